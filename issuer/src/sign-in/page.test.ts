import { expect, test } from "vitest";
import { textColorOn } from "./page.ts";

/** WCAG 2.2, relative luminance and contrast ratio. */
function contrast(a: string, b: string): number {
  const [light = 0, dark = 0] = [a, b]
    .map((color) => {
      const [red = 0, green = 0, blue = 0] = [1, 3, 5]
        .map((at) => Number.parseInt(color.slice(at, at + 2), 16) / 255)
        .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    })
    .toSorted((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}

test("text is readable on any brand color", () => {
  const parts = ["00", "33", "66", "77", "88", "99", "cc", "ff"];
  const colors = parts.flatMap((r) => parts.flatMap((g) => parts.map((b) => `#${r}${g}${b}`)));
  const worst = Math.min(...colors.map((color) => contrast(color, textColorOn(color))));
  expect(colors).toHaveLength(512);
  expect(worst).toBeGreaterThan(4.5);
});
