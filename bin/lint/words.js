// Names and comments in the field's terms: docs/glossary.md has the terms, forbidden-words.json has what they replace.
import { readFileSync } from "node:fs";
import { basename } from "node:path";

const list = JSON.parse(readFileSync(new URL("./forbidden-words.json", import.meta.url), "utf8"));
const segments = new Set(list.segments);
const allowed = new Set(list.allowed);
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

/** Texts of several words: messages, help, test names. Text that other systems define has no exception: split it. */
export const texts = {
  meta: { type: "problem", schema: [] },
  create(context) {
    const report = (node, text) => {
      const fault = /\w \w/.test(text) ? phraseFaultOf(text) : undefined;
      if (fault !== undefined) context.report({ node, message: fault });
    };
    return {
      Literal: (node) => typeof node.value === "string" && report(node, node.value),
      TemplateElement: (node) => report(node, node.value.raw),
      JSXText: (node) => report(node, node.value),
    };
  },
};
