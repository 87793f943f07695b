import type { Engine } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { EngineForm } from "./engine-form.ts";
import { postgresql } from "./postgresql.ts";
import { valkey } from "./valkey.ts";

/** An engine of the catalog without a form does not compile. */
const forms: Readonly<Record<Engine, EngineForm>> = { postgresql, valkey };

/** Throws for what is no engine of the catalog: services were checked when they were made. */
export function engineFormOf(engine: string): EngineForm {
  const form = Object.hasOwn(forms, engine) ? forms[engine as Engine] : undefined;
  if (form === undefined) throw new Error(`${engine} is no engine of the catalog`);
  return form;
}
