import { defineOperation } from "#operation/operation-definition.ts";

/** Operations of a hosted app besides `create`, whose type is that of services. */
export const hostingOperations = {
  deploy: defineOperation({ type: "deploy", of: "the app" }),
} as const;
