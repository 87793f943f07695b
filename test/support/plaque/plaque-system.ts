import { text, type ValuesOf } from "@holdfast/common/config.ts";
import type { Quotas } from "@holdfast/controller/access/organization/quotas.ts";
import type { Kernel } from "@holdfast/controller/kernel/kernel.ts";
import { declareSystem } from "@holdfast/controller/kernel/system-declaration.ts";
import type { System } from "@holdfast/controller/kernel/system.ts";
import { createPlaqueApi } from "./plaque-api.ts";
import { createPlaqueWork } from "./plaque-reconciler.ts";
import { plaqueKind } from "./plaque.ts";

const plaqueSettings = {
  plaqueMotto: text("HOLDFAST_PLAQUE_MOTTO", "What stands before the words of each plaque", "Here"),
} as const;

/** A system of one resource, with one of everything that a system can have. */
export const plaqueSystem = declareSystem({
  name: "plaque",
  settings: plaqueSettings,
  scopes: { plaques: { rights: ["read", "write"], wholeFrom: "developer" } },
  audited: { "fixture.v1.PlaqueService": "plaque" },
  events: {
    "plaque.engraved": {
      when: "a plaque was engraved",
      data: {
        plaque_id: { type: "uuid", meaning: "the plaque" },
        engraved: { type: "string", meaning: "what stands on it" },
      },
      example: { plaque_id: "0198f2a4-7a11-7d02-8f6c-2b1e5a4c3d90", engraved: "Here: Ada slept" },
    },
  },
  open: openPlaqueSystem,
});

function openPlaqueSystem(
  kernel: Kernel,
  { quotas }: { readonly quotas: Quotas },
  { plaqueMotto: motto }: ValuesOf<typeof plaqueSettings>,
): System {
  const plaques = kernel.collections.open(plaqueKind);
  return {
    name: "plaque",
    rpcs: [createPlaqueApi({ ...kernel, plaques, quotas })],
    work: [createPlaqueWork({ ...kernel, plaques, motto })],
    metrics: [{ name: "plaques", help: "Plaques of all organizations", read: () => plaques.size }],
  };
}
