import type { Contract } from "@holdfast/testing/contract/contract.ts";

export default {
  nameScopes: { "app-kind.ts": "organization" },
} satisfies Contract;
