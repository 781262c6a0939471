// Elements of HTML and SVG; text is always text, never markup.

const SVG = "http://www.w3.org/2000/svg";

export function html(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

export const byId = (id) => document.getElementById(id);

export function percent(share) {
  const value = 100 * share;
  return value > 0 && value < 0.5 ? "<1%" : `${Math.round(value)}%`;
}
