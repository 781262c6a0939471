// The page: tabs, the sentence with one or two models, the token where one is asked for.

import { models, onTokenNeeded, setToken } from "./api.js";
import { batchView } from "./batch.js";
import { byId, html } from "./elements.js";
import { panel } from "./panel.js";
import { tabs } from "./tabs.js";

const FIRST = "play some quiet jazz in the kitchen at seven tonight";
const DELAY = 220; // milliseconds without a key before the models are asked
let known = [];
let panels = [];
let timer = null;

onTokenNeeded(() => {
  byId("token").hidden = false;
  byId("token-value").focus();
});
byId("token").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(byId("token-value").value);
  byId("token").hidden = true;
  begin();
});
tabs(document.querySelector('[role="tablist"]'));
byId("text").addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(ask, DELAY);
});
byId("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    ask();
  }
});
for (const id of ["model-0", "model-1"]) byId(id).addEventListener("change", choose);
addEventListener("hashchange", fromAddress);
begin();

async function begin() {
  let answer;
  try {
    answer = await models();
  } catch (error) {
    return trouble(error.status === 401 ? refusedToken() : error.message);
  }
  trouble("");
  known = answer.models;
  const options = () => known.map((model) => html("option", { value: model.name }, model.name));
  byId("model-0").replaceChildren(...options());
  byId("model-1").replaceChildren(html("option", { value: "" }, "no other model"), ...options());
  byId("text").value ||= addressed() || FIRST;
  batchView(answer);
  choose();
}

function choose() {
  const names = [byId("model-0").value, byId("model-1").value].filter(Boolean);
  for (const one of panels) one.stop();
  panels = names.map((name) => panel(known.find((model) => model.name === name)));
  byId("panels").classList.toggle("two", panels.length === 2);
  byId("panels").replaceChildren(...panels.map((one) => one.view));
  ask();
}

function ask() {
  clearTimeout(timer);
  const text = byId("text").value;
  history.replaceState(null, "", text ? `#${encodeURIComponent(text.toWellFormed())}` : location.pathname);
  for (const one of panels) one.ask(text);
}

function addressed() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

function fromAddress() {
  byId("text").value = addressed();
  ask();
}

function refusedToken() {
  return byId("token-value").value ? "The server does not accept this token." : "";
}

function trouble(message) {
  byId("trouble").textContent = message;
  byId("trouble").hidden = !message;
}
