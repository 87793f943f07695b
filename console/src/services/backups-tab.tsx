import { useState } from "preact/hooks";
import type { Backup, ManagedService } from "@holdfast/sdk/responses.ts";
import { useLive } from "../live/use-live.ts";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Age, Card, Facts } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { BackupSettingsCard } from "./backup-settings-card.tsx";
import { BackupsTable } from "./backups-table.tsx";
import { faultOfTime, localText, timeInputOf, positionOf, timeLineOf } from "./backups-view.ts";
import { ForkCard } from "./fork-card.tsx";
import { toneOf } from "../tone.ts";
import type { TabProps } from "./tab-props.ts";

/** Backups with their schedule, and new services of their data or of that of any point in time. */
export function BackupsTab({ service, reload }: TabProps) {
  const backups = useLive<readonly Backup[]>(
    `backups ${service.id}`,
    async (signal) => {
      const list = account.value.client.backups.list(service.id, {}, { signal, limit: 50 });
      for await (const { entries } of list.pages()) return entries;
      return [];
    },
    {
      service: service.id,
      pollIntervalMs: (data) => (data?.some(({ status }) => toneOf(status) === "busy") ? 1_000 : 15_000),
    },
  );
  return (
    <>
      <Restore service={service} />
      <BackupsTable service={service} reload={reload} backups={backups} />
      <ForkCard service={service} backups={backups.data ?? []} />
      <BackupSettingsCard serviceId={service.id} />
    </>
  );
}

function Restore({ service }: { readonly service: ManagedService }) {
  const { backups } = service;
  const newest = backups?.restorable ? Date.parse(backups.restorable.to) : Date.now();
  const [input, setInput] = useState<string | undefined>();
  const form = useForm({ name: `${service.name}-restored` });
  if (backups === null)
    return (
      <Card title="Restore">
        <p class="quiet">This engine has no backups.</p>
      </Card>
    );
  const line = timeLineOf(backups);
  const chosen = input === undefined ? newest : Date.parse(input);
  const fault = faultOfTime(backups, chosen);
  return (
    <Card title="Restore a point in time">
      <FormBody
        form={form}
        action="Restore"
        kind="primary"
        refusal={refusalOf("services:write") ?? fault}
        send={async ({ name }, idempotencyKey) => {
          const point = new Date(chosen).toISOString();
          const created = await account.value.client.backups.restoreTo(service.id, point, { name }, { idempotencyKey });
          openPage(hrefOf("services", created.id));
        }}
      >
        <p class="quiet">
          {line === undefined
            ? "The first completed backup makes times to restore."
            : "A new service is created with the data of that time; this service is unchanged."}
        </p>
        {line && (
          <div class="timeline">
            <svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
              <rect class="window" width="100" height="1" />
              {line.gaps.map(({ from, width }) => (
                <rect key={from} class="gap" x={from} width={width} height="1" />
              ))}
              {!Number.isNaN(chosen) && (
                <line
                  class="mark"
                  x1={positionOf(line, chosen)}
                  x2={positionOf(line, chosen)}
                  y1="0"
                  y2="1"
                  vector-effect="non-scaling-stroke"
                />
              )}
            </svg>
          </div>
        )}
        <Facts
          facts={[
            ["Earliest time", backups.restorable === null ? "none yet" : localText(backups.restorable.from)],
            ["Latest time", backups.restorable === null ? "none yet" : localText(backups.restorable.to)],
            ["Gaps", backups.gaps.length],
            ["Next backup", <Age key="next" time={backups.next_at} />],
          ]}
        />
        <div class="halves">
          <TextField
            label="Time, in your local time zone"
            type="datetime-local"
            value={input ?? timeInputOf(newest)}
            onInput={setInput}
            fault={(line === undefined ? undefined : fault) ?? form.fault("restore_point")}
          />
          <TextField label="Name of the new service" {...form.field("name")} autocomplete="off" />
        </div>
      </FormBody>
    </Card>
  );
}
