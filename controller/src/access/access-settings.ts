import { text, type ValuesOf } from "@holdfast/common/config.ts";

export const accessSettings = {
  bootstrapFile: text(
    "HOLDFAST_BOOTSTRAP_FILE",
    "File with the first credentials; empty when they are there already",
    "",
  ),
} as const;

export type AccessSettings = ValuesOf<typeof accessSettings>;
