"""A trained model behind HTTP, and a page to look at it. FastAPI and uvicorn are the extra "serve"."""
