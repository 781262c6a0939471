"""A real Chromium: Playwright's own, or the distribution's. Without one the tests are skipped, or fail where
REQUIRE_BROWSER is set, as it is in continuous integration."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Error, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def chromium() -> Iterator[Browser]:
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        path = own if os.path.exists(own) else next(filter(None, map(shutil.which, NAMES)), None)
        try:
            browser = playwright.chromium.launch(executable_path=path, args=arguments)
        except Error as error:
            if os.environ.get("REQUIRE_BROWSER"):
                raise
            pytest.skip(f"no Chromium, `make browser` installs one: {str(error).splitlines()[0]}")
        with browser:
            yield browser
