// Names and comments in the field's terms: docs/glossary.md has the terms, forbidden-words.json has what they replace.
import { readFileSync } from "node:fs";
import { basename } from "node:path";

const list = JSON.parse(readFileSync(new URL("./forbidden-words.json", import.meta.url), "utf8"));
const segments = new Set(list.segments);
const allowed = new Set(list.allowed);
/** Values of stored objects and of the API, which do not change. */
const storedValues = new Set(list.storedValues);
const beginning = new RegExp(`^(${list.beginnings.join("|")})\\b`);
const docstringBeginning = new RegExp(`^(${list.docstringBeginnings.join("|")})\\b`);
// A type after a colon in prose is read as an annotation with it. `types` hide errors from the compiler.
const phrase = new RegExp(`\\b(?:${list.phrases.join("|")})\\b|: (?:${list.types.join("|")})\\b`);
/** Spellings that are not American. */
export const spelling = new RegExp(list.spelling.join("|"), "i");

/** The words of a name: `toldWithinMs`, `told_within_ms` and `told-within.ts` begin with `told`. */
function wordsOf(name) {
  return name.split(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z]+/).map((word) => word.toLowerCase());
}

/** The forbidden word of a name; undefined without one. */
export function forbiddenIn(name) {
  if (allowed.has(name)) return undefined;
  return wordsOf(name).find((word) => segments.has(word)) ?? spelling.exec(name)?.[0];
}

/** The fault of a comment by its text; `isFirst`: no comment stands on the line before it. */
function faultOf(text, isFirst) {
  const words = text.replace(/^[\s*/]+/, "");
  const begins = isFirst
    ? (beginning.exec(words) ?? (text.startsWith("*") ? docstringBeginning.exec(words) : null))
    : null;
  if (begins !== null) return `A comment begins with "${begins[0]}". Its subject is a noun of the code or the field.`;
  const misspelled = spelling.exec(text)?.[0];
  return misspelled === undefined
    ? phraseFaultOf(text.replaceAll(/\s+\*?\s*/g, " "))
    : `"${misspelled}" is not the American spelling.`;
}

/** The forbidden phrase of a sentence; undefined without one. */
export function phraseFaultOf(text) {
  const found = phrase.exec(text)?.[0];
  return found === undefined ? undefined : `"${found}" is vague. Write who does what, and when.`;
}

/** Names of declarations, properties and files in the field's terms. */
export const names = {
  meta: { type: "problem", schema: [] },
  create(context) {
    const report = (node) => {
      const word = forbiddenIn(node.name);
      if (word !== undefined)
        context.report({ node, message: `The name has "${word}". docs/glossary.md has the terms.` });
    };
    return {
      Program(node) {
        const file = basename(context.filename);
        const word = forbiddenIn(file);
        if (word !== undefined) context.report({ node, message: `The file's name ${file} has "${word}".` });
      },
      Identifier: report,
      PrivateIdentifier: report,
    };
  },
};

export const comments = {
  meta: { type: "problem", schema: [] },
  create(context) {
    return {
      Program() {
        let lastLine = -1;
        for (const comment of context.sourceCode.getAllComments()) {
          const { start, end } = comment.loc;
          const isFirst = comment.type === "Block" || start.line !== lastLine + 1;
          lastLine = end.line;
          const fault = faultOf(comment.value, isFirst);
          if (fault !== undefined) context.report({ node: comment, message: fault });
          const lines = context.sourceCode.lines.slice(start.line - 1, end.line);
          const isLong = lines.some((line) => line.length > list.columns && !line.includes("://"));
          if (isLong) context.report({ node: comment, message: `A line is longer than ${list.columns} columns.` });
        }
      },
    };
  },
};

/** Comment lines of a program or statement in a template string, with the number of their line in it. */
function commentsOf(template) {
  return template.split("\n").flatMap((line, index) => {
    const text = /^\s*(?:--|\/\/) (.*)$/.exec(line)?.[1];
    return text === undefined ? [] : [{ text, index }];
  });
}

/** Names that SQL in a template string gives to relations and columns: `name AS (...)` and `... AS name`. */
function sqlNamesOf(template) {
  if (!/\b(?:SELECT|INSERT|UPDATE|DELETE)\b/.test(template)) return [];
  const given = /\b(\w+) AS (?:NOT )?(?:MATERIALIZED )?\(|\bAS (\w+)/g;
  return [...template.matchAll(given)].map(([, relation, name]) => relation ?? name);
}

/**
 * Texts of several words: messages, help, test names. In templates also comments of programs, and names in SQL. Text
 * that other systems define has no exception: split it.
 */
export const texts = {
  meta: { type: "problem", schema: [] },
  create(context) {
    const report = (node, text) => {
      const fault = /\w \w/.test(text) ? phraseFaultOf(text) : undefined;
      if (fault !== undefined) context.report({ node, message: fault });
    };
    const reportTemplate = (node, text) => {
      report(node, text);
      let lastLine = -2;
      for (const comment of commentsOf(text)) {
        const fault = faultOf(comment.text, comment.index !== lastLine + 1);
        lastLine = comment.index;
        if (fault !== undefined) context.report({ node, message: `${fault} Comment: ${comment.text}` });
      }
      for (const name of sqlNamesOf(text)) {
        const word = forbiddenIn(name);
        if (word !== undefined) context.report({ node, message: `The name ${name} has "${word}".` });
      }
    };
    return {
      Literal: (node) => typeof node.value === "string" && report(node, node.value),
      TemplateElement: (node) => reportTemplate(node, node.value.raw),
      JSXText: (node) => report(node, node.value),
    };
  },
};

/** Values of types, such as states, in the field's terms; and a class has the name that its instances report. */
export const values = {
  meta: { type: "problem", schema: [] },
  create(context) {
    return {
      TSLiteralType({ literal }) {
        if (typeof literal.value !== "string" || storedValues.has(literal.value)) return;
        const word = forbiddenIn(literal.value);
        if (word !== undefined)
          context.report({ node: literal, message: `The value "${literal.value}" has "${word}".` });
      },
      PropertyDefinition({ key, value, parent }) {
        if (key.name !== "name" || typeof value?.value !== "string") return;
        const own = parent.parent.id?.name;
        if (value.value !== own)
          context.report({ node: value, message: `The class ${own} reports the name ${value.value}.` });
      },
    };
  },
};
