// The server: JSON in, JSON out. What it refuses becomes an Error with its message and `status`.

const KEPT = "sentence-state token";
let askForToken = null;

export function onTokenNeeded(ask) {
  askForToken = ask;
}

export function setToken(token) {
  sessionStorage.setItem(KEPT, token);
}

export const models = (signal) => call("GET", "/v1/models", undefined, signal);
export const predict = (texts, model, signal) => call("POST", "/v1/predict", { texts: texts.map(whole), model }, signal);
export const trace = (text, model, signal) => call("POST", "/v1/trace", { text: whole(text), model }, signal);

// Half of a surrogate pair is no character, and no JSON.
const whole = (text) => (Array.isArray(text) ? text.map(whole) : text.toWellFormed());

// A header holds bytes, each written as one character: those of UTF-8, as the server reads them.
const bytes = (text) => String.fromCharCode(...new TextEncoder().encode(text));

async function call(method, path, content, signal) {
  const headers = content === undefined ? {} : { "Content-Type": "application/json" };
  const token = sessionStorage.getItem(KEPT);
  if (token) headers.Authorization = `Bearer ${bytes(token)}`;
  const body = content === undefined ? undefined : JSON.stringify(content);
  let answer;
  try {
    answer = await fetch(path, { method, headers, body, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it still running?");
  }
  if (answer.ok) return answer.json();
  const refused = await answer.json().catch(() => ({}));
  if (answer.status === 401 && askForToken) askForToken();
  const reason = refused.detail || `The server answered ${answer.status}.`;
  const alone = content?.texts === undefined || content.texts.length === 1; // a reader who asked for one counts none
  throw Object.assign(new Error(alone ? reason.replace(/^text 0 /, "the text ") : reason), {
    status: answer.status,
    after: Number(answer.headers.get("Retry-After")) || 1,
  });
}
