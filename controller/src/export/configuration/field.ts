/** One key of a destination's configuration, as data: how its value is judged, shown and kept. */
export interface Field {
  readonly kind: "text" | "secret" | "url" | "flag" | "whole" | "choice" | "texts" | "secretTexts";
  readonly required?: true;
  readonly default?: string | number | boolean;
  /** With another value, secrets would go elsewhere, or to another account there: they have to be given anew. */
  readonly isTarget?: true | "account";
  /** Of a text. */
  readonly pattern?: RegExp;
  /** What the pattern is for people: completes "must". */
  readonly words?: string;
  /** Of a choice. */
  readonly values?: readonly string[];
  readonly least?: number;
  /** Of a whole number; of a text its characters, of texts how many. */
  readonly most?: number;
  /** Names of texts. */
  readonly namePattern?: RegExp;
  readonly refusedNames?: RegExp;
  /** Of a URL. */
  readonly mayHaveQuery?: true;
}

/** What a secret is shown as; given, it stands for the one that is kept. */
export const mask = "********";

/** Bounds of values where a field says none. */
export const usualMost = { text: 256, secret: 4_096, url: 2_048, texts: 20, textOfTexts: 1_024 } as const;

export function isSecret({ kind }: Field): boolean {
  return kind === "secret" || kind === "secretTexts";
}
