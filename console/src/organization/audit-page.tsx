import type { AuditLogEntry } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { TextField } from "../parts/field.tsx";
import { Age, Badge, PageHead } from "../parts/parts.tsx";
import { currentAddress, setQuery } from "../router/location.ts";
import { account } from "../session/account.ts";

const maxEntries = 100;

/** Changes and refused changes with their callers; the filters are in the address. */
export function AuditPage() {
  const { query } = currentAddress.value;
  const [actor, action] = [query.get("actor") ?? "", query.get("action") ?? ""];
  const live = useLive<readonly AuditLogEntry[]>(
    `audit ${actor} ${action}`,
    async (signal) => {
      const filter = { ...(actor !== "" && { actor }), ...(action !== "" && { action }) };
      const list = account.value.client.auditLog(filter, { limit: maxEntries, signal });
      for await (const { entries } of list.pages()) return entries;
      return [];
    },
    { pollIntervalMs: 15_000 },
  );
  return (
    <>
      <PageHead title="Audit log" about="Changes and refused changes, newest first" />
      <div class="halves">
        <TextField
          label="Caller, such as user:anna"
          type="search"
          value={actor}
          onInput={(value) => setQuery({ actor: value })}
        />
        <TextField
          label="Action, such as api-key.create or api-key"
          type="search"
          value={action}
          onInput={(value) => setQuery({ action: value })}
        />
      </div>
      <LiveTable
        title="Changes"
        live={live}
        keyOf={({ id }) => id}
        icon="shield"
        empty="No change matches"
        columns={[
          ["Time", ({ time }) => <Age time={time} />],
          ["Caller", ({ actor: caller }) => <b>{caller}</b>],
          ["Action", (entry) => entry.action],
          ["Object", ({ object_id: id }) => <span class="mono small">{id}</span>],
          ["Result", ({ result }) => <Badge tone={result === "ok" ? "good" : "warn"}>{result}</Badge>],
          ["Address", ({ source }) => <span class="mono small">{source}</span>],
        ]}
      />
    </>
  );
}
