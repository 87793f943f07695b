/** A table or view with the columns that the console's role may select. */
export interface SchemaTable {
  /** Qualified name, such as `public.orders`. */
  readonly name: string;
  readonly kind: "table" | "view";
  readonly comment: string | null;
  readonly columns: readonly { readonly name: string; readonly type: string; readonly comment: string | null }[];
  /** Definitions of primary, foreign and unique keys, as the engine prints them. */
  readonly keys: readonly string[];
}

/** The words of three letters or more, in lower case; a word with a plural s is included without it as well. */
export function wordsOf(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? [];
  const all = words.flatMap((word) => (word.length > 3 && word.endsWith("s") ? [word, word.slice(0, -1)] : [word]));
  return [...new Set(all)];
}
