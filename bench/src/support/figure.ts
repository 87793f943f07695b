/** A number with its unit in a printed value: `4.74x (1.89x - 7.22x)` has three. */
export interface Figure {
  readonly number: number;
  /** The unit, such as `x`, `ms` or `MB/s`; empty for a count. */
  readonly unit: string;
  /** False for what is not a number, and for zero with a unit: nothing takes no time and no memory. */
  readonly isRead: boolean;
}

/** A figure of an earlier run. */
export interface StoredFigure {
  readonly value: string;
  /** Short commit id of the checkout, with `+` if it had changes. */
  readonly commit: string;
  /** Date of the run. */
  readonly on: string;
  /** Load average before the run. */
  readonly load: number;
  readonly flags: readonly string[];
}

/** Units of quantities that are never zero. */
const units = "x|ms|s|us|MiB|MB|KiB|KB|GB|MB/s|/s|CPU-s/GB";
const pattern = new RegExp(
  `(NaN|-?Infinity|undefined|(?<![\\w.])\\d[\\d,]*(?:\\.\\d+)?)(?: ?(${units}|%)(?![\\w/]))?`,
  "g",
);
/** Share by which a figure may be worse than the one before without a note: runs differ by as much. */
const noise = 0.2;

export function figuresOf(value: string): Figure[] {
  return [...value.matchAll(pattern)].map(([, text = "", unit = ""]) => {
    const number = Number(text.replaceAll(",", ""));
    return { number, unit, isRead: Number.isFinite(number) && (number !== 0 || unit === "" || unit === "%") };
  });
}

/** ` met` or ` missed` for a bar such as `<= 0.9x` or `<= 150 ms p95`; empty if the units differ or it has two bars. */
export function verdictOf(figures: readonly Figure[], bar: string): string {
  const [, comparison] = /^([<>]=?) /.exec(bar) ?? [];
  const [limit, ...others] = figuresOf(bar.replace(/ p9\d$/, ""));
  // A bar of p95 is one of the second figure in `p50 / p95`.
  const figure = / p9\d$/.test(bar) ? figures[1] : figures[0];
  if (comparison === undefined || limit === undefined || others.length > 0) return "";
  if (figure === undefined || figure.unit !== limit.unit) return "";
  const isMet = comparison.startsWith("<") ? figure.number <= limit.number : figure.number >= limit.number;
  return isMet ? " met" : " missed";
}

/** The earlier figure, and whether the present one is worse than it by more than the noise of runs. */
export function compared(figures: readonly Figure[], before: StoredFigure, bar: string): string {
  const [now, then] = [figures[0], figuresOf(before.value)[0]];
  const text = `before ${before.value} at ${before.commit}`;
  if (now === undefined || then === undefined || now.unit !== then.unit || !/^[<>]/.test(bar)) return text;
  const [worse, better] = bar.startsWith("<") ? [now.number, then.number] : [then.number, now.number];
  return worse > better * (1 + noise) ? `${text}, WORSE` : text;
}
