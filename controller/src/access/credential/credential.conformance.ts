import type { Contract } from "@holdfast/testing/contract/contract.ts";

export default {
  kindBounds: {
    "credential-use": "one a key or token",
  },
  nameScopes: {
    "credential.ts": "global: users sign in by it, before an organization is known",
  },
} satisfies Contract;
