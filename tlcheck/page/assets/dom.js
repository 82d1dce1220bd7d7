"use strict";
// Building blocks. Texts only ever become text nodes: no kernel's name is parsed as markup.

const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A text with what cannot be seen, or turns around what can, spelled out. */
function visible(text) {
  return text.replace(INVISIBLE, (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
}

/** An element. Properties that start with "on" are listeners; children are elements or texts. */
function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, visible(String(value)));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(typeof child === "string" ? visible(child) : child);
  }
  return element;
}

const byId = (id) => document.getElementById(id);

function plural(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function tagOf([word, tone]) {
  return make("span", { class: `tag tone-${tone}` }, word);
}
