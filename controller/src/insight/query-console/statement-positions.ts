import { lookUp } from "@holdfast/common/look-up.ts";

/** A node of a parse tree, in JSON. */
export type Tree = Record<string, unknown>;

/** A text and its parse tree, whose locations count bytes from 0. */
export interface ParsedText {
  readonly text: string;
  readonly tree: Tree;
}

/** Positions of nodes in the caller's text, by position in the printed statement. Both count characters from 1. */
export type PositionMap = ReadonlyMap<number, number>;

/**
 * Maps positions of the printed tree to positions of the original tree, which has the same shape. `positionAt` converts
 * bytes of the original text to characters.
 */
export function positionMapOf(printed: ParsedText, original: Tree, positionAt: (byte: number) => number): PositionMap {
  const positions = new Map<number, number>();
  const printedPositionAt = characterPositions(printed.text);
  visit(printed.tree, original);
  return positions;

  function visit(printedNode: unknown, originalNode: unknown): void {
    if (
      typeof printedNode !== "object" ||
      printedNode === null ||
      typeof originalNode !== "object" ||
      originalNode === null
    )
      return;
    for (const [name, child] of Object.entries(printedNode)) {
      const match = lookUp(originalNode, name);
      if (name !== "location") visit(child, match);
      else if (typeof child === "number" && typeof match === "number" && match >= 0)
        positions.set(printedPositionAt(child), positionAt(match));
    }
  }
}

interface StatementPositions {
  readonly positions: PositionMap;
  /** Positions of functions and relations in the caller's text, by name. */
  readonly named: ReadonlyMap<string, number>;
}

/**
 * Converts the position, or name, of an agent's refusal, which refers to the printed text, to a position in the
 * caller's text; 0 for none.
 */
export function requestPosition(
  { position, name }: { readonly position: number; readonly name: string },
  { positions, named }: StatementPositions,
): number {
  return (position > 0 ? positions.get(position) : named.get(name)) ?? 0;
}

/** Returns a function from a byte of the text (from 0) to the character that begins there (from 1). */
export function characterPositions(text: string): (byte: number) => number {
  const bytes = Buffer.from(text);
  // ASCII only.
  if (bytes.length === text.length) return (byte) => (byte <= bytes.length ? byte + 1 : 0);
  const positions = new Uint32Array(bytes.length + 1);
  let position = 0;
  // A byte 10xxxxxx continues a character of UTF-8.
  for (const [index, byte] of bytes.entries()) positions[index] = (byte & 0xc0) === 0x80 ? position : (position += 1);
  positions[bytes.length] = position + 1;
  return (byte) => positions[byte] ?? 0;
}
