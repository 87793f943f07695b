import type { Handlers } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { AppAuthService } from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import { hostOf } from "./auth.ts";
import type { AuthAccess, ChangeAuth } from "./auth-access.ts";
import { idpMessage, issuerUrlOf } from "./auth-message.ts";
import type { AuthSecrets } from "./auth-secrets.ts";
import { idpDestinationOf, idpSpecOf } from "./idp.ts";

type IdpHandlers = Pick<Handlers<typeof AppAuthService>, "putAuthIdpProvider" | "deleteAuthIdpProvider">;

interface Deps {
  readonly access: AuthAccess;
  readonly change: ChangeAuth;
  readonly secrets: Pick<AuthSecrets, "after">;
  /** Throws TARGET_NOT_ALLOWED. */
  readonly requireAllowed: (
    target: { readonly host: string; readonly port: number },
    label: string,
    signal: AbortSignal,
  ) => Promise<void>;
  readonly issuerPort: number;
}

/** The RPCs of identity providers. */
export function idpHandlers({ access, change, secrets, requireAllowed, issuerPort }: Deps): IdpHandlers {
  return {
    async putAuthIdpProvider(request, call) {
      const { appId, provider } = request;
      const { idps } = access.require(appId, call).object.spec;
      const specOf = (before: typeof idps) => {
        const earlier = before.find((each) => each.provider === provider);
        const stored = earlier && { sealed: earlier.sealedClientSecret, destination: idpDestinationOf(earlier) };
        return idpSpecOf(request, (destination) =>
          secrets.after(appId, { field: "client_secret", provided: request.clientSecret, stored, destination }),
        );
      };
      const { hostname, port } = new URL(specOf(idps).issuerUrl);
      const target = { host: hostname.replace(/^\[(.*)\]$/, "$1"), port: port === "" ? 443 : Number(port) };
      await requireAllowed(target, "provider", call.signal);
      const audit = { action: "app-auth.idp.put", detail: provider };
      const { spec } = await change(appId, call, audit, (auth) => {
        const others = auth.spec.idps.filter((each) => each.provider !== provider);
        return { idps: [...others, specOf(auth.spec.idps)] };
      });
      const put = spec.idps.find((each) => each.provider === provider);
      if (put === undefined) throw new Error("the stored spec lacks the provider that was put");
      return idpMessage(put, issuerUrlOf(hostOf(spec), issuerPort));
    },

    async deleteAuthIdpProvider({ appId, provider }, call) {
      await change(appId, call, { action: "app-auth.idp.delete", detail: provider }, ({ spec }) => {
        const idps = spec.idps.filter((each) => each.provider !== provider);
        if (idps.length === spec.idps.length)
          throw new HoldfastError("OBJECT_NOT_FOUND", "The app has no such provider.");
        return { idps };
      });
      return {};
    },
  };
}
