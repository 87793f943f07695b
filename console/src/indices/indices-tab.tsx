import type { Index } from "@holdfast/sdk/responses.ts";
import { bytesText, numberText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { Badge } from "../parts/parts.tsx";
import type { TabProps } from "../services/tab-props.ts";
import { account, refusalOf } from "../session/account.ts";
import { indexHealth, shardsText } from "./index-view.ts";

const maxEntries = 200;

/** Indices of documents in the service's engine. */
export function IndicesTab({ service: { id } }: TabProps) {
  const { indices } = account.value.client;
  const live = useLive<readonly Index[]>(
    `indices ${id}`,
    (signal) => indices.list(id, { signal, limit: maxEntries }).toArray(),
    { service: id, pollIntervalMs: 10_000 },
  );
  return (
    <LiveTable
      title="Indices"
      live={live}
      keyOf={({ name }) => name}
      icon="list"
      empty="No indices yet"
      columns={[
        ["Name", ({ name }) => <b>{name}</b>],
        ["Health", (index) => <HealthBadge index={index} />],
        ["Documents", ({ documents }) => <span class="number">{numberText(documents)}</span>],
        ["Size of all copies", ({ size_bytes: size }) => <span class="number">{bytesText(size)}</span>],
        ["Shards", (index) => shardsText(index)],
        [
          "",
          ({ name }) => (
            <DestroyButton
              text="Delete"
              refusal={refusalOf("services:write")}
              title={`Delete ${name}`}
              name={name}
              action="Delete index"
              destroy={() => indices.delete(id, name).then(live.reload)}
            >
              <p>All of its documents are deleted. Only a restore of the service from a backup has them again.</p>
            </DestroyButton>
          ),
        ],
      ]}
    >
      <p class="quiet">A client creates an index with its first document: the Connection tab has its settings.</p>
    </LiveTable>
  );
}

function HealthBadge({ index }: { readonly index: Index }) {
  const { text, tone } = indexHealth(index);
  return <Badge tone={tone}>{text}</Badge>;
}
