import type { Tree } from "./console-grammar.ts";

/** A text with its tree, whose locations count bytes from 0 on. */
export interface ParsedText {
  readonly text: string;
  readonly tree: Tree;
}

/** Where the same node stands in the statement that was printed and in the one that was asked: characters from 1 on. */
export type Places = ReadonlyMap<number, number>;

/** Where each node of the one tree stands in the other, which has the same shape. `placeOf` knows the other's characters. */
export function placesOf(printed: ParsedText, asked: Tree, placeOf: (byte: number) => number): Places {
  const places = new Map<number, number>();
  const printedPlaceOf = characterPlaces(printed.text);
  visit(printed.tree, asked);
  return places;

  function visit(one: unknown, other: unknown): void {
    if (typeof one !== "object" || one === null || typeof other !== "object" || other === null) return;
    for (const [name, held] of Object.entries(one)) {
      const match = (other as Tree)[name];
      if (name !== "location") visit(held, match);
      else if (typeof held === "number" && typeof match === "number" && match >= 0)
        places.set(printedPlaceOf(held), placeOf(match));
    }
  }
}

interface StatementPlaces {
  readonly places: Places;
  /** Where functions and relations are named in what was asked. */
  readonly named: ReadonlyMap<string, number>;
}

/** The agent speaks of what was printed, which the caller has not seen: the same place in what was asked, 0 for none. */
export function askedPosition(
  { position, name }: { readonly position: number; readonly name: string },
  { places, named }: StatementPlaces,
): number {
  return (position > 0 ? places.get(position) : named.get(name)) ?? 0;
}

/** Answers the character, from 1 on, that begins at a byte of the text. */
export function characterPlaces(text: string): (byte: number) => number {
  const bytes = Buffer.from(text);
  // All of one byte.
  if (bytes.length === text.length) return (byte) => (byte <= bytes.length ? byte + 1 : 0);
  const places = new Uint32Array(bytes.length + 1);
  let place = 0;
  // A byte of 10xxxxxx goes on with a character.
  for (const [index, byte] of bytes.entries()) places[index] = (byte & 0xc0) === 0x80 ? place : (place += 1);
  places[bytes.length] = place + 1;
  return (byte) => places[byte] ?? 0;
}
