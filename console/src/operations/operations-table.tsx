import type { Operation } from "@holdfast/sdk/responses.ts";
import { labelOf, spanText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { Age, Badge } from "../parts/parts.tsx";
import { account } from "../session/account.ts";
import { pollMsOf, toneOf } from "../tone.ts";
import { operationDetail } from "./operation-view.ts";

const maxOperations = 50;

/** The newest operations of a service, with their errors. */
export function OperationsTable({ serviceId }: { readonly serviceId: string }) {
  const live = useLive<readonly Operation[]>(
    `operations ${serviceId}`,
    async (signal) => {
      const list = account.value.client.operations.list(serviceId, { signal, limit: maxOperations });
      for await (const { entries } of list.pages()) return entries;
      return [];
    },
    { service: serviceId, pollIntervalMs: (data) => pollMsOf(data?.map(({ status }) => status)) },
  );
  return (
    <LiveTable
      title="Operations"
      live={live}
      keyOf={({ id }) => id}
      icon="list"
      empty="No operation yet"
      columns={[
        ["Started", ({ created_at: time }) => <Age time={time} />],
        ["Operation", ({ type }) => <b>{labelOf(type)}</b>],
        ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
        ["Took", ({ created_at: start, finished_at: end }) => <span class="number">{spanText(start, end)}</span>],
        ["Details", (operation) => <span class="quiet">{operationDetail(operation)}</span>],
        ["Id", ({ id }) => <span class="mono small">{id}</span>],
      ]}
    />
  );
}
