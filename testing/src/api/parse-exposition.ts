export interface ExposedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const name = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const labelName = "[a-zA-Z_][a-zA-Z0-9_]*";
const labelValue = String.raw`"(?:[^"\\\n]|\\\\|\\"|\\n)*"`;
const help = new RegExp(`^# HELP (${name}) (\\S.*)$`);
const type = new RegExp(`^# TYPE (${name}) (counter|gauge|histogram|summary|untyped)$`);
const sample = new RegExp(`^(${name})(?:\\{((?:${labelName}=${labelValue},?)*)\\})? (\\S+)$`);

/**
 * Parses Prometheus' text format 0.0.4 and throws where its own parser and linter would: an unknown line, a metric
 * without help and type before its samples, a metric in two places, two samples of the same labels, a value that is no
 * number.
 */
export function parseExposition(text: string): ExposedSample[] {
  if (text !== "" && !text.endsWith("\n")) throw new Error("the last line has no end");
  const samples: ExposedSample[] = [];
  const [helped, typed, seen] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const histograms = new Set<string>();
  let current = "";
  for (const line of text.split("\n").filter((each) => each !== "")) {
    const [, helpOf] = help.exec(line) ?? [];
    const [, typeOf] = type.exec(line) ?? [];
    if (helpOf !== undefined) {
      once(helped, helpOf, "help");
      current = helpOf;
    } else if (typeOf !== undefined) {
      if (typeOf !== current) throw new Error(`the type of ${typeOf} does not follow its help`);
      once(typed, typeOf, "type");
      if (/ (histogram|summary)$/.test(line)) histograms.add(typeOf);
    } else {
      const [, metric = "", pairs = "", figure = ""] = sample.exec(line) ?? [];
      if (metric === "") throw new Error(`no line of the format: ${line}`);
      const family = histograms.has(current) ? metric.replace(/_(bucket|sum|count)$/, "") : metric;
      if (family !== current || !typed.has(family)) throw new Error(`${metric} is apart from its help and type`);
      once(seen, `${metric}{${pairs}}`, "sample");
      const value = Number(figure);
      if (Number.isNaN(value) && figure !== "Nan") throw new Error(`${figure} is no number`);
      samples.push({ name: metric, labels: labelsOf(pairs), value });
    }
  }
  return samples;
}

function labelsOf(pairs: string): Record<string, string> {
  const found = [...pairs.matchAll(new RegExp(`(${labelName})=(${labelValue})`, "g"))];
  return Object.fromEntries(found.map(([, label = "", quoted = '""']) => [label, JSON.parse(quoted) as string]));
}

function once(set: Set<string>, key: string, what: string): void {
  if (set.has(key)) throw new Error(`two of ${what}: ${key}`);
  set.add(key);
}
