import type { Handlers } from "@holdfast/common/call.ts";
import { type FieldFault, HoldfastError, invalid } from "@holdfast/common/errors.ts";
import {
  type AppAuthService,
  AuthClientType,
  type UpdateAuthClientRequest,
} from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import { type AuthObject, type ClientSpec, clientsMax } from "./auth.ts";
import type { AuthAccess, ChangeAuth } from "./auth-access.ts";
import { clientMessage } from "./auth-message.ts";
import { newSecret, secretHash } from "./auth-secrets.ts";
import { originFaults, uriFaults } from "./checked-auth.ts";

type ClientHandlers = Pick<
  Handlers<typeof AppAuthService>,
  "createAuthClient" | "listAuthClients" | "updateAuthClient" | "deleteAuthClient" | "rotateAuthClientSecret"
>;

interface Deps {
  readonly access: AuthAccess;
  readonly change: ChangeAuth;
  readonly newId: () => string;
}

/** The RPCs of OAuth clients, the programs that sign an app's users in. */
export function clientHandlers({ access, change, newId }: Deps): ClientHandlers {
  return {
    async createAuthClient(request, call) {
      access.require(request.appId, call);
      const type = request.type === AuthClientType.CONFIDENTIAL ? "confidential" : "public";
      const secret = type === "confidential" ? newSecret() : undefined;
      const client: ClientSpec = {
        clientId: newId(),
        name: request.name,
        type,
        secretHash: secret === undefined ? "" : secretHash(secret),
        redirectUris: request.redirectUris?.values ?? [],
        postLogoutRedirectUris: request.postLogoutRedirectUris?.values ?? [],
        allowedOrigins: request.allowedOrigins?.values ?? [],
        requirePkce: request.requirePkce ?? true,
      };
      refuse(clientFaults(client));
      await change(request.appId, call, { action: "app-auth.client.create", detail: client.clientId }, (auth) => {
        const { clients } = auth.spec;
        if (clients.length >= clientsMax)
          throw new HoldfastError("WRONG_STATE", `The app has ${clientsMax} clients already.`);
        return { clients: [...clients, client] };
      });
      return clientMessage(client, secret);
    },

    listAuthClients: async ({ appId }, call) => ({
      clients: access.require(appId, call).object.spec.clients.map((client) => clientMessage(client)),
    }),

    async updateAuthClient(request, call) {
      const audit = { action: "app-auth.client.update", detail: request.clientId };
      const { spec } = await change(request.appId, call, audit, (auth) =>
        withClient(auth, request.clientId, (client) => {
          const after = updated(client, request);
          // Stored fields that do not change may violate rules that were added later.
          const isChanged = changedFields(request);
          refuse(clientFaults(after).filter(({ field }) => isChanged.has(field.split("[")[0] ?? "")));
          return after;
        }),
      );
      return clientMessage(clientOf(spec.clients, request.clientId));
    },

    async deleteAuthClient({ appId, clientId }, call) {
      await change(appId, call, { action: "app-auth.client.delete", detail: clientId }, ({ spec }) => {
        clientOf(spec.clients, clientId);
        return { clients: spec.clients.filter((client) => client.clientId !== clientId) };
      });
      return {};
    },

    async rotateAuthClientSecret({ appId, clientId }, call) {
      const secret = newSecret();
      const audit = { action: "app-auth.client.rotate-secret", detail: clientId };
      const { spec } = await change(appId, call, audit, (auth) =>
        withClient(auth, clientId, (client) => {
          if (client.type === "public") throw new HoldfastError("WRONG_STATE", "A public client has no secret.");
          return { ...client, secretHash: secretHash(secret) };
        }),
      );
      return clientMessage(clientOf(spec.clients, clientId), secret);
    },
  };
}

/** Faults of a client beyond the proto's rules. */
function clientFaults(client: Omit<ClientSpec, "secretHash">): FieldFault[] {
  const { type, requirePkce, redirectUris, postLogoutRedirectUris, allowedOrigins } = client;
  const pkce = {
    field: "require_pkce",
    pointer: "/require_pkce",
    code: "invalid_value",
    detail: "must be true for a public client",
  };
  return [
    ...uriFaults("redirect_uris", redirectUris, 1),
    ...uriFaults("post_logout_redirect_uris", postLogoutRedirectUris),
    ...originFaults("allowed_origins", allowedOrigins),
    ...(type === "public" && !requirePkce ? [pkce] : []),
  ];
}

function refuse(faults: readonly FieldFault[]): void {
  if (faults.length > 0) throw invalid(...faults);
}

function clientOf(clients: readonly ClientSpec[], clientId: string): ClientSpec {
  const client = clients.find((each) => each.clientId === clientId);
  if (client === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", "The app has no such client.");
  return client;
}

function withClient({ spec }: AuthObject, clientId: string, edit: (client: ClientSpec) => ClientSpec) {
  const after = edit(clientOf(spec.clients, clientId));
  return { clients: spec.clients.map((client) => (client.clientId === clientId ? after : client)) };
}

function updated(client: ClientSpec, request: UpdateAuthClientRequest): ClientSpec {
  const paths = changedFields(request);
  const unknownPath = [...paths].find((path) => !changeable.has(path));
  if (paths.size === 0)
    throw invalid({ field: "update_mask", code: "required", detail: "must name at least one field" });
  if (unknownPath !== undefined)
    throw invalid({ field: unknownPath, code: "unknown_field", detail: "cannot be changed" });
  return {
    ...client,
    ...(paths.has("name") && request.name !== undefined && { name: request.name }),
    ...(paths.has("redirect_uris") && { redirectUris: request.redirectUris?.values ?? [] }),
    ...(paths.has("post_logout_redirect_uris") && {
      postLogoutRedirectUris: request.postLogoutRedirectUris?.values ?? [],
    }),
    ...(paths.has("allowed_origins") && { allowedOrigins: request.allowedOrigins?.values ?? [] }),
    ...(paths.has("require_pkce") && { requirePkce: request.requirePkce ?? true }),
  };
}

function changedFields({ updateMask }: UpdateAuthClientRequest): ReadonlySet<string> {
  return new Set((updateMask?.paths ?? []).map((path) => path.split(".")[0] ?? ""));
}

const changeable = new Set(["name", "redirect_uris", "post_logout_redirect_uris", "allowed_origins", "require_pkce"]);
