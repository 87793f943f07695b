import type { QuotaFigures } from "@holdfast/sdk/responses.ts";
import { labelOf, numberText } from "../format.ts";
import type { Tone } from "../tone.ts";

/** A row of the table of quotas. */
interface QuotaRow {
  readonly name: string;
  readonly title: string;
  /** "3 of 50". */
  readonly text: string;
  /** Used share in percent, at most 100. */
  readonly percent: number;
  readonly tone: Tone;
}

const warnPercent = 80;

/** The quotas of an organization, the most used first. */
export function quotaRows(quotas: Readonly<Record<string, QuotaFigures>>): readonly QuotaRow[] {
  return Object.entries(quotas)
    .map(([name, { limit, used }]) => {
      const percent = used >= limit ? 100 : Math.floor((used / limit) * 100);
      const unit = name.endsWith("_gb") ? " GB" : "";
      return {
        name,
        title: labelOf(name.replace(/_gb$/, "")),
        text: `${numberText(used)} of ${numberText(limit)}${unit}`,
        percent,
        tone: percent === 100 ? ("bad" as const) : percent >= warnPercent ? ("warn" as const) : ("good" as const),
      };
    })
    .sort((one, other) => other.percent - one.percent || one.title.localeCompare(other.title));
}

const toneTexts: ReadonlyMap<Tone, string> = new Map([
  ["bad", "used up"],
  ["warn", "nearly used up"],
]);

/** The text beside a quota that has little left; undefined for another. */
export function quotaNotice({ tone }: QuotaRow): string | undefined {
  return toneTexts.get(tone);
}
