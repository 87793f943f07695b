import type { DescEnum, DescField } from "@bufbuild/protobuf";

/** Maximum number of columns of a printed line. */
export const maxColumns = 120;

/** A union of the JSON names of an enumeration, without the unspecified value. */
export function valuesOf({ values }: DescEnum): string {
  return values
    .filter(({ number }) => number !== 0)
    .map(({ jsonName }) => JSON.stringify(jsonName))
    .join(" | ");
}

/** TypeScript type of a scalar. ScalarType 8 is bool, 9 string and 12 bytes; all others are numbers. */
export function scalarType(field: DescField): string {
  if (field.scalar === 8) return "boolean";
  return field.scalar === 9 || field.scalar === 12 ? "string" : "number";
}

/** The text as a doc comment, wrapped to the maximum of columns; no lines if there is no text. */
export function comment(text: string | undefined, indent: string): string[] {
  if (text === undefined) return [];
  const line = `${indent}/** ${text} */`;
  if (line.length <= maxColumns) return [line];
  const lines: string[] = [];
  let last = "";
  for (const word of text.split(" ")) {
    if (`${indent} * ${last} ${word}`.length > maxColumns) {
      lines.push(last);
      last = word;
    } else last = last === "" ? word : `${last} ${word}`;
  }
  return [`${indent}/**`, ...[...lines, last].map((each) => `${indent} * ${each}`), `${indent} */`];
}
