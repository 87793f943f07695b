import { defineOperation } from "#operation/operation-definition.ts";

const of = "its engine";

/** Operations inside an engine: they may run concurrently with others of their service. */
export const engineOperations = {
  create_user: defineOperation({ type: "create_user", of }),
  update_user: defineOperation({ type: "update_user", of }),
  reset_password: defineOperation({ type: "reset_password", of }),
  delete_user: defineOperation({ type: "delete_user", of }),
  create_database: defineOperation({ type: "create_database", of }),
  delete_database: defineOperation({ type: "delete_database", of }),
} as const;

export type EngineOperationType = keyof typeof engineOperations;
