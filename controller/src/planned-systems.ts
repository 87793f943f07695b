import { declareSystem } from "#kernel/system-declaration.ts";

/** Types of the specification (2, Events) whose makers are still to come. */
const signIn = declareSystem({
  name: "sign-in",
  events: {
    "auth.user.deleted": {
      when: "an end user of an app was erased",
      data: {
        user_id: { type: "uuid", meaning: "the user, when the request named them so", optional: true },
        email_digest: {
          type: "string",
          meaning: "keyed digest of the address, when the request named that",
          optional: true,
        },
      },
      example: { user_id: "0198f2a4-9d31-7e24-b18e-4f7a0e2d6c53" },
      planned: true,
    },
  },
});

/** Scopes of the specification whose RPCs are still to come. */
const files = declareSystem({
  name: "files",
  scopes: { files: { rights: ["read", "write"], wholeFrom: "developer" } },
});

/** Systems that are still to come. */
export const plannedSystems = [signIn, files] as const;
