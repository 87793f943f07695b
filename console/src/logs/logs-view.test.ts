import { expect, test } from "vitest";
import { visibleText } from "./logs-view.ts";

test.each([
  ["plain\ttext\n", "plain\ttext\n"],
  ["\u001b[31mred", "␛[31mred"],
  ["a\u202Eb", String.raw`a\u202eb`],
  ["\r\u0000", "␍␀"],
])("%j is visible as %j", (message, text) => expect(visibleText(message)).toBe(text));
