import { text, type ValuesOf } from "@holdfast/common/config.ts";

/** The model that translates questions. */
export const modelSettings = {
  modelUrl: text(
    "HOLDFAST_MODEL_URL",
    "URL of an API as OpenAI's, up to and without /chat/completions; empty: questions are not translated",
    "",
  ),
  modelName: text("HOLDFAST_MODEL_NAME", "Name of the model there", ""),
  modelKeyFile: text("HOLDFAST_MODEL_KEY_FILE", "File with the key that the API takes as bearer", ""),
} as const;

export type ModelSettings = ValuesOf<typeof modelSettings>;
