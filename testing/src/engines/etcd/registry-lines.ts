import type { RegistryLine } from "../../platform/extended-checkout.ts";

const folder = "testing/src/engines/etcd";

/** All lines that etcd has outside of its folder; its image is one that the platform itself needs. */
export const registryLines: readonly RegistryLine[] = [
  {
    file: "common/src/engine-catalog/engine-catalog.ts",
    below: "import type { EngineRow",
    line: `import { etcd } from "../../../${folder}/row.ts";`,
  },
  {
    file: "common/src/engine-catalog/engine-catalog.ts",
    below: "const rows = {",
    line: "  etcd,",
  },
  {
    file: "agent/src/engines/drivers.ts",
    below: "const loaders = {",
    line: `  etcd: async () => (await import("../../../${folder}/driver.ts")).createEtcdDriver,`,
  },
  {
    file: "controller/src/services/engine/engines.ts",
    below: "export { mysql }",
    line: `export { etcd } from "../../../../${folder}/profile.ts";`,
  },
  {
    file: "cli/src/clients/engines.ts",
    below: "export { mysql }",
    line: `export { etcd } from "../../../${folder}/client.ts";`,
  },
];
