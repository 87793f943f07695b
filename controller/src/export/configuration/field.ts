/** One key of a destination's configuration: how its value is validated, rendered and stored. */
export interface Field {
  readonly kind: "text" | "secret" | "url" | "flag" | "integer" | "choice" | "texts" | "secretTexts";
  readonly required?: true;
  readonly default?: string | number | boolean;
  /** The value selects the host (true) or the account that secrets are sent to: to change it, enter them again. */
  readonly isTarget?: true | "account";
  /** Pattern of a text or URL. */
  readonly pattern?: RegExp;
  /** The pattern in words, the part of a message behind "must", such as `be an access key id`. */
  readonly requirement?: string;
  /** Values of a choice. */
  readonly values?: readonly string[];
  /** Minimum value of an integer. */
  readonly min?: number;
  /** Maximum value of an integer, length of a text in characters, or number of texts. */
  readonly max?: number;
  /** Pattern of the names of texts. */
  readonly namePattern?: RegExp;
  readonly refusedNames?: RegExp;
  /** Permits a query in a URL. */
  readonly mayHaveQuery?: true;
  /** A URL without a path is refused; `requirement` names the paths. */
  readonly needsPath?: true;
}

/** Default lengths in characters; `texts`: number of entries. */
export const defaultMax = { text: 256, secret: 4_096, url: 2_048, texts: 20, textOfTexts: 1_024 } as const;

export function isSecret({ kind }: Field): boolean {
  return kind === "secret" || kind === "secretTexts";
}
