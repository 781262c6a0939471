# The server: docker build -t sentence-state . && docker run -p 8000:8000 -v $PWD/runs:/runs:ro sentence-state /runs/reviews
# TORCH is what pip is given for PyTorch; with TORCH_INDEX it comes from another index, such as PyTorch's own of CPU builds.
FROM python:3.12-slim AS wheel
WORKDIR /source
RUN pip install --no-cache-dir build hatchling
COPY pyproject.toml README.md LICENSE ./
COPY sentence_state sentence_state
RUN python -m build --wheel --no-isolation --outdir /wheel

FROM python:3.12-slim
ARG TORCH=torch
ARG TORCH_INDEX=
RUN pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "$TORCH"
COPY --from=wheel /wheel /wheel
RUN pip install --no-cache-dir "$(ls /wheel/*.whl)[serve,onnx]" && rm -r /wheel
RUN useradd --create-home server
USER server
EXPOSE 8000
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=3)"]
ENTRYPOINT ["sentence-state", "serve", "--host", "0.0.0.0", "--port", "8000"]
