import { useState } from "preact/hooks";
import type { QueryOrder } from "@holdfast/sdk/requests.ts";
import type { QueryStatistics, RunningQueries } from "@holdfast/sdk/responses.ts";
import { durationText, numberText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { SelectField } from "../parts/field.tsx";
import { account, refusalOf } from "../session/account.ts";
import { hitText, orders, stateText, timeText } from "./performance-view.ts";
import type { TabProps } from "./tab-props.ts";

/** Queries of a service: those that run now, which can be canceled, and the most expensive ones. */
export function PerformanceTab({ service: { id } }: TabProps) {
  return (
    <>
      <Running serviceId={id} />
      <Statistics serviceId={id} />
    </>
  );
}

function Running({ serviceId }: { readonly serviceId: string }) {
  const { queries } = account.value.client;
  const live = useLive<RunningQueries>(`running ${serviceId}`, (signal) => queries.running(serviceId, { signal }), {
    service: serviceId,
    pollIntervalMs: 5_000,
  });
  const refusal = refusalOf("services:write");
  return (
    <LiveTable
      title={live.data?.truncated === true ? "Running queries, the longest" : "Running queries"}
      live={{ ...live, data: live.data?.queries }}
      keyOf={(each) => each.query_run_id}
      icon="bolt"
      empty="No query runs"
      columns={[
        [
          "Session",
          ({ pid, username, database }) => (
            <>
              <b>{pid}</b>{" "}
              <span class="small quiet">
                {username} in {database}
              </span>
            </>
          ),
        ],
        ["State", (each) => stateText(each)],
        ["Since", ({ age_seconds: seconds }) => durationText(seconds)],
        ["Query", ({ query }) => <Statement text={query} />],
        [
          "",
          ({ query_run_id: run, pid }) => (
            <>
              <ActionButton
                refusal={refusal}
                run={() => queries.cancel(serviceId, run).then(live.reload)}
                done={`The query of session ${pid} is being canceled`}
              >
                Cancel<span class="visually-hidden"> the query of session {pid}</span>
              </ActionButton>
              <DestroyButton
                text="Terminate"
                refusal={refusal}
                title="Terminate the session"
                name={String(pid)}
                action="Terminate session"
                destroy={() => queries.terminate(serviceId, run).then(live.reload)}
              >
                <p>The client loses its connection, and its transaction is rolled back.</p>
              </DestroyButton>
            </>
          ),
        ],
      ]}
    />
  );
}

function Statistics({ serviceId }: { readonly serviceId: string }) {
  const [order, setOrder] = useState<QueryOrder>("total_time");
  const live = useLive<QueryStatistics>(
    `statistics ${serviceId} ${order}`,
    (signal) => account.value.client.queries.top(serviceId, { order, limit: 50 }, { signal }),
    { service: serviceId, pollIntervalMs: 30_000 },
  );
  return (
    <>
      <div class="halves">
        <SelectField
          label="Order of the statistics"
          value={order}
          options={orders}
          onInput={(value) => setOrder(orders.find(([each]) => each === value)?.[0] ?? "total_time")}
        />
      </div>
      <LiveTable
        title="Most expensive queries"
        live={{ ...live, data: live.data?.queries }}
        keyOf={(each) => `${each.database} ${each.query_id}`}
        icon="list"
        empty="No query has been counted yet"
        columns={[
          ["Total", (each) => timeText(each.total_time)],
          ["Average", (each) => timeText(each.mean_time)],
          ["Calls", (each) => numberText(each.calls)],
          ["Rows", (each) => numberText(each.rows)],
          ["In memory", hitText],
          ["Database", (each) => each.database],
          ["Query", (each) => <Statement text={each.query} />],
        ]}
      />
    </>
  );
}

const visibleCharacters = 200;

/** The beginning of a statement; its tooltip has the rest. */
function Statement({ text }: { readonly text: string }) {
  const cut = text.length > visibleCharacters ? `${text.slice(0, visibleCharacters)}…` : text;
  return (
    <code class="mono small" title={text}>
      {cut}
    </code>
  );
}
