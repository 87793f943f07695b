import { createServer } from "node:https";
import Provider, { type Adapter, type AdapterPayload } from "oidc-provider";
import pg from "pg";
import { answerQueries } from "../support/peer-queries.ts";

// A typical alternative: oidc-provider with a plain adapter, a row for each document, on the database with the issuer's
// users; access tokens are JWTs like the issuer's, so that a refresh is two signatures and one rotation.
interface Settings {
  readonly database: pg.PoolConfig;
  readonly key: string;
  readonly cert: string;
  readonly port: number;
  readonly jwk: Record<string, unknown>;
  readonly clientId: string;
}

const { database, key, cert, port, jwk, clientId } = JSON.parse(process.argv[2] ?? "") as Settings;
const pool = new pg.Pool({ ...database, max: 4 });
await pool.query(
  `create table if not exists oidc_documents (
     model text not null, id text not null, payload jsonb not null, grant_id text, uid text,
     expires_at timestamptz, consumed_at timestamptz, primary key (model, id))`,
);
await pool.query("create index if not exists oidc_documents_of_grant on oidc_documents (grant_id)");

function adapterOf(model: string): Adapter {
  async function find(where: string, value: string): Promise<AdapterPayload | undefined> {
    const { rows } = await pool.query<{ payload: AdapterPayload; consumed_at: Date | null }>(
      `select payload, consumed_at from oidc_documents where model = $1 and ${where} = $2 and (expires_at is null or expires_at > now())`,
      [model, value],
    );
    const [row] = rows;
    return row && { ...row.payload, ...(row.consumed_at !== null && { consumed: true }) };
  }
  return {
    async upsert(id, payload, expiresIn) {
      const expiresAt = expiresIn ? new Date(Date.now() + expiresIn * 1_000) : null;
      await pool.query(
        `insert into oidc_documents (model, id, payload, grant_id, uid, expires_at) values ($1, $2, $3, $4, $5, $6)
         on conflict (model, id) do update set payload = $3, grant_id = $4, uid = $5, expires_at = $6`,
        [model, id, payload, payload.grantId ?? null, payload.uid ?? null, expiresAt],
      );
    },
    find: (id) => find("id", id),
    findByUid: (uid) => find("uid", uid),
    findByUserCode: async () => undefined,
    async consume(id) {
      await pool.query("update oidc_documents set consumed_at = now() where model = $1 and id = $2", [model, id]);
    },
    async destroy(id) {
      await pool.query("delete from oidc_documents where model = $1 and id = $2", [model, id]);
    },
    async revokeByGrantId(grantId) {
      await pool.query("delete from oidc_documents where grant_id = $1", [grantId]);
    },
  };
}

const resource = "https://api.example";
const scope = "openid email offline_access";
const provider = new Provider(`https://127.0.0.1:${port}`, {
  adapter: adapterOf,
  clients: [
    {
      client_id: clientId,
      token_endpoint_auth_method: "none",
      redirect_uris: ["https://shop.example/auth/callback"],
      grant_types: ["authorization_code", "refresh_token"],
    },
  ],
  jwks: { keys: [jwk] },
  claims: { openid: ["sub"], email: ["email", "email_verified"] },
  conformIdTokenClaims: false,
  rotateRefreshToken: true,
  cookies: { keys: ["of a measurement"] },
  findAccount: (_ctx, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true }),
  }),
  features: {
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({ scope: "email", audience: clientId, accessTokenFormat: "jwt" }),
    },
  },
});
const serve = provider.callback();
const server = createServer({ key, cert }, (request, response) => void serve(request, response));
await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));

answerQueries({
  /** Refresh tokens of this many users. */
  async tokens({ count }: { count: number }) {
    const client = await provider.Client.find(clientId);
    if (client === undefined) throw new Error("the client is not there");
    const made: string[] = [];
    for (let n = 0; n < count; n += 1) {
      const accountId = `user-${n}`;
      const grant = new provider.Grant({ accountId, clientId });
      grant.addOIDCScope(scope);
      grant.addResourceScope(resource, "email");
      const grantId = await grant.save();
      const token = new provider.RefreshToken({
        accountId,
        client,
        grantId,
        gty: "authorization_code",
        scope,
        resource,
        claims: {},
        authTime: Math.floor(Date.now() / 1_000),
        rotations: 0,
        iiat: Math.floor(Date.now() / 1_000),
      } as never);
      made.push(await token.save());
    }
    return made;
  },
});
process.send?.({ ready: true });
