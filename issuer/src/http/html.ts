/** Text that is already HTML. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Value = string | number | Html | readonly Html[] | undefined | false;

/** An HTML template. Values are escaped unless they are Html. */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  const filled = parts.map((part, index) => `${part}${index < values.length ? textOf(values[index]) : ""}`);
  return new Html(filled.join(""));
}

function textOf(value: Value): string {
  if (value === undefined || value === false) return "";
  if (value instanceof Html) return value.text;
  if (typeof value === "string" || typeof value === "number") return escaped(String(value));
  return value.map(({ text }) => text).join("");
}

const entities: ReadonlyMap<string, string> = new Map(
  Object.entries<string>({
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "'": "&#39;",
  }),
);

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (letter) => entities.get(letter) ?? letter);
}
