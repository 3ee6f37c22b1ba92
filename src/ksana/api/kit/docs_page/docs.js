"use strict";

const METHODS = ["get", "post", "put", "patch", "delete"];

// Text is only ever set as text, never as markup, so nothing in the description can become a script.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== "") element.append(child);
  return element;
}

const nameOf = (reference) => reference.split("/").pop();

function typeOf(schema) {
  if (!schema || Object.keys(schema).length === 0) return ["anything"];
  if (schema.$ref) return [make("a", { href: "#schema-" + nameOf(schema.$ref) }, nameOf(schema.$ref))];
  const options = schema.anyOf || schema.oneOf;
  if (options) return options.flatMap((option, index) => (index ? [" or ", ...typeOf(option)] : typeOf(option)));
  if (schema.enum) return [schema.enum.map((value) => JSON.stringify(value)).join(" | ")];
  if (schema.type === "array") return ["list of ", ...typeOf(schema.items)];
  if (schema.type === "object" && typeof schema.additionalProperties === "object") {
    return ["map to ", ...typeOf(schema.additionalProperties)];
  }
  const notes = [];
  for (const key of ["format", "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "pattern"]) {
    if (schema[key] !== undefined) notes.push(key + " " + schema[key]);
  }
  return [schema.type || "anything", notes.length ? " (" + notes.join(", ") + ")" : ""];
}

function table(heads, rows) {
  const head = make("tr", null, heads.map((text) => make("th", { scope: "col" }, text)));
  const body = rows.map((cells) => make("tr", null, cells.map((cell) => make("td", null, cell))));
  return make("table", null, make("thead", null, head), make("tbody", null, body));
}

function fields(schema) {
  const required = new Set(schema.required || []);
  const rows = Object.entries(schema.properties || {}).map(([name, field]) => [
    [make("code", null, name), required.has(name) ? " *" : ""],
    typeOf(field),
    [field.description || "", field.default !== undefined ? " default " + JSON.stringify(field.default) : ""],
  ]);
  return rows.length ? table(["Field", "Type", "About"], rows) : make("p", null, typeOf(schema));
}

function content(described) {
  return Object.entries((described && described.content) || {}).map(([media, shown]) =>
    make("p", null, make("code", null, media), " ", typeOf(shown.schema)));
}

function operation(path, method, shown) {
  const parts = [make("summary", null, make("span", { class: "method" }, method.toUpperCase()),
    make("span", { class: "path" }, path), make("span", { class: "about" }, " " + (shown.summary || "")))];
  if (shown.description) parts.push(make("p", null, shown.description));
  parts.push(make("p", { class: "faint" }, shown["x-scope"] ? "Scope " + shown["x-scope"] : "Public"));
  if (shown.parameters) {
    parts.push(make("h3", null, "Parameters"), table(["Name", "In", "Type", "About"], shown.parameters.map((p) => [
      [make("code", null, p.name), p.required ? " *" : ""], p.in, typeOf(p.schema), p.description || ""])));
  }
  if (shown.requestBody) parts.push(make("h3", null, "Body"), content(shown.requestBody));
  parts.push(make("h3", null, "Answers"), table(["Status", "Meaning", "Body"],
    Object.entries(shown.responses).map(([status, answer]) => [status, answer.description, content(answer)])));
  const details = make("details", { id: shown.operationId }, parts);
  details.dataset.words = [method, path, shown.summary, shown.operationId].join(" ").toLowerCase();
  return details;
}

function show(description) {
  document.title = description.info.title + " API";
  document.getElementById("title").textContent = description.info.title + " API " + description.info.version;
  const main = document.getElementById("main");
  const tags = document.getElementById("tags");
  main.replaceChildren();
  for (const tag of description.tags) {
    const section = make("section", { id: "tag-" + tag.name }, make("h2", null, tag.name),
      tag.description ? make("p", null, tag.description) : null);
    for (const [path, item] of Object.entries(description.paths)) {
      for (const method of METHODS) {
        if (item[method] && item[method].tags.includes(tag.name)) section.append(operation(path, method, item[method]));
      }
    }
    main.append(section);
    tags.append(make("a", { href: "#tag-" + tag.name }, tag.name));
  }
  const schemas = make("section", { id: "schemas" }, make("h2", null, "Schemas"));
  for (const [name, schema] of Object.entries(description.components.schemas)) {
    schemas.append(make("details", { id: "schema-" + name }, make("summary", null, name),
      schema.description ? make("p", null, schema.description) : null, fields(schema)));
  }
  main.append(schemas);
  tags.append(make("a", { href: "#schemas" }, "Schemas"));
  openTarget();
}

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
  if (target) target.scrollIntoView();
}

document.getElementById("find").addEventListener("input", (event) => {
  const wanted = event.target.value.trim().toLowerCase();
  for (const details of document.querySelectorAll("details[data-words]")) {
    details.hidden = !details.dataset.words.includes(wanted);
  }
});
window.addEventListener("hashchange", openTarget);

fetch("openapi.json")
  .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error("status " + answer.status))))
  .then(show)
  .catch((error) => {
    document.getElementById("main").replaceChildren(make("p", { role: "alert" }, "Cannot load openapi.json: " + error.message));
  });
