/** One key of a destination's configuration: how its value is validated, shown and stored. */
export interface Field {
  readonly kind: "text" | "secret" | "url" | "flag" | "integer" | "choice" | "texts" | "secretTexts";
  readonly required?: true;
  readonly default?: string | number | boolean;
  /** The value decides where secrets are sent (true), or as which account: a change of it needs the secrets again. */
  readonly isTarget?: true | "account";
  /** Pattern of a text or URL. */
  readonly pattern?: RegExp;
  /** The pattern in words, to complete "must", such as `be an access key id`. */
  readonly requirement?: string;
  /** Values of a choice. */
  readonly values?: readonly string[];
  readonly least?: number;
  /** Maximum: of an integer its value, of a text its length, of texts their number. */
  readonly most?: number;
  /** Pattern of the names of texts. */
  readonly namePattern?: RegExp;
  readonly refusedNames?: RegExp;
  /** True: a URL may have a query. */
  readonly mayHaveQuery?: true;
}

/** Default maximums of values. */
export const defaultMost = { text: 256, secret: 4_096, url: 2_048, texts: 20, textOfTexts: 1_024 } as const;

export function isSecret({ kind }: Field): boolean {
  return kind === "secret" || kind === "secretTexts";
}
