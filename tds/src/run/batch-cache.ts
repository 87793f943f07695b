import type { Statement } from "../parse/ast.ts";
import { parseBatch } from "../parse/batch.ts";

/** Longest text whose statements are cached, in characters. */
const textMax = 64 << 10;
/** Max characters of all cached texts; a syntax tree takes dozens of bytes for each. */
const charactersMax = 1 << 20;

/** Statements of the texts that clients sent last. A text has the same statements for each user and session. */
export class BatchCache {
  lookups = 0;
  hits = 0;
  #characters = 0;
  /** Keys are QUOTED_IDENTIFIER and the text; the least recently used entry is first. */
  readonly #entries = new Map<string, readonly Statement[]>();

  /** The statements of a text; throws as `parseBatch` does. */
  parse(text: string, quotedIdentifier: boolean): readonly Statement[] {
    this.lookups += 1;
    const key = `${quotedIdentifier ? "q" : "s"}${text}`;
    const found = this.#entries.get(key);
    if (found !== undefined) {
      this.hits += 1;
      this.#entries.delete(key);
      this.#entries.set(key, found);
      return found;
    }
    const statements = parseBatch(text, quotedIdentifier);
    if (text.length <= textMax) this.#add(key, statements);
    return statements;
  }

  #add(key: string, statements: readonly Statement[]): void {
    this.#entries.set(key, statements);
    this.#characters += key.length;
    for (const oldest of this.#entries.keys()) {
      if (this.#characters <= charactersMax) return;
      this.#entries.delete(oldest);
      this.#characters -= oldest.length;
    }
  }
}
