"""The numbers printed in the paper's Section 4, and only those, without its stars of significance. Accuracies and F1 in
percent, times in seconds."""

from __future__ import annotations

from typing import NamedTuple


class Timed(NamedTuple):
    """A score with training time an epoch and test time."""

    score: float
    train: float
    test: float


class Developed(NamedTuple):
    """A development score with training time an epoch and thousands of parameters."""

    score: float
    train: float
    parameters: int


# Table 1: sentences and "words" of train, dev and test. Those of the 16 sets are thousands of bytes, except of Books.
DATA: dict[str, tuple[int, int, int, int, int, int]] = {
    "mr": (8527, 201137, 1066, 25026, 1066, 25260),
    "fdu/books": (1400, 297_000, 200, 59_000, 400, 68_000),
    "fdu/electronics": (1398, 924_000, 200, 184_000, 400, 224_000),
    "fdu/dvd": (1400, 1_587_000, 200, 317_000, 400, 404_000),
    "fdu/kitchen_housewares": (1400, 769_000, 200, 153_000, 400, 195_000),
    "fdu/apparel": (1400, 525_000, 200, 105_000, 400, 128_000),
    "fdu/camera_photo": (1397, 1_084_000, 200, 216_000, 400, 260_000),
    "fdu/health_personal_care": (1400, 742_000, 200, 148_000, 400, 175_000),
    "fdu/music": (1400, 1_176_000, 200, 235_000, 400, 276_000),
    "fdu/toys_games": (1400, 792_000, 200, 158_000, 400, 196_000),
    "fdu/video": (1400, 1_311_000, 200, 262_000, 400, 342_000),
    "fdu/baby": (1300, 855_000, 200, 171_000, 400, 221_000),
    "fdu/magazines": (1370, 1_033_000, 200, 206_000, 400, 264_000),
    "fdu/software": (1315, 1_143_000, 200, 228_000, 400, 271_000),
    "fdu/sports_outdoors": (1400, 833_000, 200, 183_000, 400, 218_000),
    "fdu/imdb": (1400, 2_205_000, 200, 507_000, 400, 475_000),
    "fdu/mr": (1400, 196_000, 200, 41_000, 400, 48_000),
    "ptb": (39831, 950011, 1699, 40068, 2415, 56671),
    "conll2003": (14987, 204567, 3466, 51578, 3684, 46666),
}

# Table 2: S-LSTM on the development data of MR.
SENTENCE_NODES = {
    0: Developed(81.76, 56, 7216),
    1: Developed(82.64, 65, 8768),
    2: Developed(82.24, 76, 10321),
}
HIDDEN_SIZES = {
    100: Developed(81.75, 42, 4891),
    200: Developed(82.04, 54, 6002),
    300: Developed(82.64, 65, 8768),
    600: Developed(81.84, 175, 17648),
    900: Developed(81.66, 235, 33942),
}
BOUNDARIES = {False: Developed(82.36, 63, 8768), True: Developed(82.64, 65, 8768)}

# Table 3: the development data of MR.
DEVELOPMENT = {
    "LSTM": Developed(80.72, 67, 5977),
    "BiLSTM": Developed(81.73, 106, 7059),
    "2 stacked BiLSTM": Developed(81.97, 207, 9221),
    "3 stacked BiLSTM": Developed(81.53, 310, 11383),
    "4 stacked BiLSTM": Developed(81.37, 411, 13546),
    "S-LSTM": Developed(82.64, 65, 8768),
    "CNN": Developed(80.35, 34, 5637),
    "2 stacked CNN": Developed(80.97, 40, 5717),
    "3 stacked CNN": Developed(81.46, 47, 5808),
    "4 stacked CNN": Developed(81.39, 51, 5855),
    "Transformer (N=6)": Developed(81.03, 138, 7234),
    "Transformer (N=8)": Developed(81.86, 174, 7615),
    "Transformer (N=10)": Developed(81.63, 214, 8004),
}
DEVELOPMENT_WITH_ATTENTION = {"BiLSTM": Developed(82.37, 126, 7419), "S-LSTM": Developed(83.07, 87, 8858)}

# Table 4: the test data of MR.
MOVIE_REVIEW = {
    "BiLSTM": Timed(81.61, 51, 1.62),
    "2 stacked BiLSTM": Timed(81.94, 98, 3.18),
    "3 stacked BiLSTM": Timed(81.71, 137, 4.67),
    "3 stacked CNN": Timed(81.59, 31, 1.04),
    "Transformer (N=8)": Timed(81.97, 89, 2.75),
    "S-LSTM": Timed(82.45, 41, 1.53),
}
MOVIE_REVIEW_OTHERS = {
    "Socher et al. (2011)": 77.70,
    "Socher et al. (2012)": 79.00,
    "Kim (2014)": 81.50,
    "Qian et al. (2016)": 81.50,
}

# Table 5: the test data of the 16 sets, in the paper's order and with its names ("Appeal" is Apparel).
DOMAIN_NAMES = {
    "Camera": "fdu/camera_photo",
    "Video": "fdu/video",
    "Health": "fdu/health_personal_care",
    "Music": "fdu/music",
    "Kitchen": "fdu/kitchen_housewares",
    "DVD": "fdu/dvd",
    "Toys": "fdu/toys_games",
    "Baby": "fdu/baby",
    "Books": "fdu/books",
    "IMDB": "fdu/imdb",
    "MR": "fdu/mr",
    "Apparel": "fdu/apparel",
    "Magazines": "fdu/magazines",
    "Electronics": "fdu/electronics",
    "Sports": "fdu/sports_outdoors",
    "Software": "fdu/software",
}
DOMAINS = {
    "S-LSTM": {
        "Camera": Timed(90.02, 50, 2.85), "Video": Timed(86.75, 55, 3.95), "Health": Timed(86.5, 37, 2.17),
        "Music": Timed(82.04, 52, 3.44), "Kitchen": Timed(84.54, 40, 2.50), "DVD": Timed(85.52, 63, 5.29),
        "Toys": Timed(85.25, 39, 2.42), "Baby": Timed(86.25, 40, 2.63), "Books": Timed(83.44, 64, 3.64),
        "IMDB": Timed(87.15, 67, 3.69), "MR": Timed(76.2, 27, 1.25), "Apparel": Timed(85.75, 35, 2.83),
        "Magazines": Timed(93.75, 51, 2.93), "Electronics": Timed(83.25, 47, 2.55),
        "Sports": Timed(85.75, 44, 2.64), "Software": Timed(87.75, 54, 2.98),
    },
    "BiLSTM": {
        "Camera": Timed(87.05, 115, 8.37), "Video": Timed(84.73, 140, 12.59), "Health": Timed(85.52, 118, 6.38),
        "Music": Timed(78.74, 185, 12.27), "Kitchen": Timed(82.22, 118, 10.18), "DVD": Timed(83.71, 166, 15.42),
        "Toys": Timed(85.72, 119, 7.58), "Baby": Timed(84.51, 125, 8.50), "Books": Timed(82.12, 240, 13.59),
        "IMDB": Timed(86.02, 248, 13.33), "MR": Timed(75.73, 39, 2.27), "Apparel": Timed(86.05, 119, 11.98),
        "Magazines": Timed(92.52, 214, 11.06), "Electronics": Timed(82.51, 195, 10.14),
        "Sports": Timed(84.04, 172, 8.64), "Software": Timed(86.73, 245, 12.38),
    },
    "2 stacked BiLSTM": {
        "Camera": Timed(88.07, 221, 16.1), "Video": Timed(85.23, 268, 25.86), "Health": Timed(85.89, 227, 11.16),
        "Music": Timed(80.45, 268, 23.46), "Kitchen": Timed(83.77, 225, 19.77), "DVD": Timed(84.77, 217, 28.31),
        "Toys": Timed(85.82, 231, 14.83), "Baby": Timed(85.45, 238, 17.73), "Books": Timed(82.77, 458, 28.82),
        "IMDB": Timed(86.55, 486, 26.22), "MR": Timed(75.98, 72, 4.63), "Apparel": Timed(86.35, 229, 22.76),
        "Magazines": Timed(92.89, 417, 22.77), "Electronics": Timed(82.33, 356, 19.77),
        "Sports": Timed(84.78, 328, 16.34), "Software": Timed(86.97, 459, 24.68),
    },
}  # fmt: skip
DOMAIN_AVERAGES = {  # the row "Average", which is not what the rows above it average
    "S-LSTM": Timed(85.38, 47.30, 2.98),
    "BiLSTM": Timed(84.01, 153.48, 10.29),
    "2 stacked BiLSTM": Timed(84.64, 282.24, 20.2),
}
DOMAIN_AVERAGES_OF_THE_TEXT = {"S-LSTM": 85.6, "2 stacked BiLSTM": 84.9, "3 stacked BiLSTM": 84.57}
THREE_STACKED_TRAIN = 423.6  # the text, with the average of the same model

# Table 6: the test data of the Penn Treebank.
POS = {
    "BiLSTM": Timed(97.35, 254, 22.50),
    "2 stacked BiLSTM": Timed(97.41, 501, 43.99),
    "3 stacked BiLSTM": Timed(97.40, 746, 64.96),
    "S-LSTM": Timed(97.55, 237, 22.16),
}
POS_OTHERS = {
    "Manning (2011)": 97.28,
    "Collobert et al. (2011)": 97.29,
    "Sun (2014)": 97.36,
    "Søgaard (2011)": 97.50,
    "Huang et al. (2015)": 97.55,
    "Ma and Hovy (2016)": 97.55,
    "Yang et al. (2017)": 97.55,
}

# Table 7: the test data of CoNLL-2003.
NER = {
    "BiLSTM": Timed(90.96, 82, 9.89),
    "2 stacked BiLSTM": Timed(91.02, 159, 18.88),
    "3 stacked BiLSTM": Timed(91.06, 235, 30.97),
    "S-LSTM": Timed(91.57, 79, 9.78),
}
NER_OTHERS = {
    "Collobert et al. (2011)": 89.59,
    "Passos et al. (2014)": 90.90,
    "Luo et al. (2015)": 91.20,
    "Huang et al. (2015)": 90.10,
    "Lample et al. (2016)": 90.94,
    "Ma and Hovy (2016)": 91.21,
    "Yang et al. (2017)": 91.26,
    "Rei (2017)": 86.26,
    "Peters et al. (2017)": 91.93,
}

# Figures 2 and 3 are drawings without numbers; the text gives their best points: steps and score.
BEST_STEPS = {"mr": (9, 82.64), "ptb": (7, 97.58), "conll2003": (9, 94.98)}

# The memory paragraph of Section 4.5: megabytes of a GPU on the development data of MR.
MEMORY = {"S-LSTM": 252, "BiLSTM": 89, "2 stacked BiLSTM": 146, "4 stacked BiLSTM": 253}
