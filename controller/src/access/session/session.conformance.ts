import { type CreateSessionRequestSchema, SessionService } from "@holdfast/proto/holdfast/v1/session_pb.ts";
import {
  callerScoped,
  casesOf,
  type Contract,
  objectScoped,
  platformScoped,
} from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(SessionService, {
      createSession: callerScoped(() => ({ username: "none", password: "a guessed password" })),
      listSessions: platformScoped(() => ({})),
      getCurrentSession: objectScoped(() => ({})),
      deleteCurrentSession: objectScoped(() => ({})),
      deleteSession: platformScoped(() => ({ id: "all" })),
      createSessionCode: platformScoped(() => ({})),
    }),
  ],
  sdk: [
    sdkCalls(SessionService, {
      createSession: (c) => c.sessions.create({ username: "u", password: "p", code: "c" }),
      listSessions: (c) => c.sessions.list(page),
      getCurrentSession: (c) => c.sessions.current(),
      deleteCurrentSession: (c) => c.sessions.deleteCurrent(),
      deleteSession: (c) => c.sessions.delete("i"),
      createSessionCode: (c) => c.sessions.createCode(),
    }),
  ],
  sdkInputs: sameInputs<{
    newSession: SameInput<sdk.NewSession, typeof CreateSessionRequestSchema>;
  }>(),
  listBounds: {
    "holdfast.v1.CurrentSession.organizations": "200; ListOrganizations has all",
  },
  kindBounds: {
    "browser-session": "50 a user",
    "browser-session-code": "10 a user, for a minute",
  },
  sentSecrets: {
    "holdfast.v1.CreateSessionRequest.code": "compared with a hash",
    "holdfast.v1.CreateSessionRequest.password": "compared with a hash",
  },
} satisfies Contract;
