import { defineOperation } from "#operation/operation-definition.ts";

/** Operations of a hosted app, besides those whose types are of services, such as `create` and `stop`. */
export const hostingOperations = {
  deploy: defineOperation({ type: "deploy", of: "the app" }),
  scale: defineOperation({ type: "scale", of: "the app" }),
} as const;
