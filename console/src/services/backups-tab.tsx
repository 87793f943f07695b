import { useState } from "preact/hooks";
import type { Backup, ManagedService } from "@holdfast/sdk/responses.ts";
import { bytesText, durationText } from "../format.ts";
import { useLive } from "../live/use-live.ts";
import { Button } from "../parts/button.tsx";
import { TextField } from "../parts/field.tsx";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { Age, Badge, Card, Facts, Loading } from "../parts/parts.tsx";
import { useAction } from "../parts/use-action.ts";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { faultOfMoment, inputOf, positionOf, timeLineOf } from "./backups-view.ts";
import { toneOf } from "./service-view.ts";
import type { TabProps } from "./tab-props.ts";

/** Backups, and a restore of any moment into a new service. */
export function BackupsTab({ service, reload }: TabProps) {
  const action = useAction();
  const backups = useLive<readonly Backup[]>(
    `backups ${service.id}`,
    async (signal) => {
      const list = account.value.client.backups.list(service.id, {}, { signal, limit: 50 });
      for await (const { entries } of list.pages()) return entries;
      return [];
    },
    {
      service: service.id,
      everyMs: (data) => (data?.some(({ status }) => toneOf(status) === "busy") ? 1_000 : 15_000),
    },
  );
  const take = () =>
    action.run(async () => {
      await account.value.client.backups.create(service.id);
      backups.reload();
      reload();
    });
  return (
    <>
      <Restore service={service} />
      <ErrorNotice error={action.error} />
      <Card
        title="Backups"
        flush
        actions={
          <Button icon="plus" busy={action.isBusy} refusal={refusalOf("services:write")} onClick={take}>
            Take a backup
          </Button>
        }
      >
        {backups.data === undefined ? (
          <div class="body">
            {backups.error === undefined ? <Loading /> : <ErrorNotice error={backups.error} onRetry={backups.reload} />}
          </div>
        ) : backups.data.length === 0 ? (
          <Empty icon="clock" title="The first backup comes soon">
            <p class="quiet">It begins by itself once the service runs, and then each day.</p>
          </Empty>
        ) : (
          <BackupTable backups={backups.data} />
        )}
      </Card>
    </>
  );
}

function BackupTable({ backups }: { readonly backups: readonly Backup[] }) {
  return (
    <table class="table">
      <caption class="visually-hidden">Backups</caption>
      <thead>
        <tr>
          {["Taken", "State", "Kind", "Reason", "Size", "Duration", "Deleted"].map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {backups.map((backup) => (
          <tr key={backup.id}>
            <td>
              <Age time={backup.created_at} />
            </td>
            <td>
              <span class="row">
                <Badge tone={toneOf(backup.status)}>{backup.status}</Badge>
                {backup.error_message !== null && <span class="small">{backup.error_message}</span>}
              </span>
            </td>
            <td>{backup.kind}</td>
            <td>{backup.trigger}</td>
            <td class="number">{backup.size_bytes === null ? "" : bytesText(backup.size_bytes)}</td>
            <td class="number">{backup.duration_seconds === null ? "" : durationText(backup.duration_seconds)}</td>
            <td>{backup.expires_at === null ? "never" : <Age time={backup.expires_at} />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Restore({ service }: { readonly service: ManagedService }) {
  const { backups } = service;
  const newest = backups?.restorable ? Date.parse(backups.restorable.to) : Date.now();
  const [moment, setMoment] = useState<string | undefined>();
  const form = useForm({ name: `${service.name}-restored` });
  if (backups === null)
    return (
      <Card title="Restore">
        <p class="quiet">This engine has no backups.</p>
      </Card>
    );
  const line = timeLineOf(backups);
  const chosen = moment === undefined ? newest : Date.parse(moment);
  const fault = faultOfMoment(backups, chosen);
  return (
    <Card title="Restore a moment">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (fault !== undefined) return;
          form.submit(async ({ name }, idempotencyKey) => {
            const target = { target_service_name: name };
            const point = new Date(chosen).toISOString();
            const made = await account.value.client.backups.restoreTo(service.id, point, target, { idempotencyKey });
            openPage(hrefOf("services", made.id));
          });
        }}
      >
        <p class="quiet">The data of that moment come back as a new service; this one goes on unchanged.</p>
        {line && (
          <div class="timeline">
            <svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
              <rect class="window" width="100" height="1" />
              {line.gaps.map(({ from, width }) => (
                <rect key={from} class="gap" x={from} width={width} height="1" />
              ))}
              <line
                class="mark"
                x1={positionOf(line, chosen)}
                x2={positionOf(line, chosen)}
                y1="0"
                y2="1"
                vector-effect="non-scaling-stroke"
              />
            </svg>
          </div>
        )}
        <Facts
          facts={[
            ["First moment", <Age key="first" time={backups.restorable?.from} />],
            ["Last moment", <Age key="last" time={backups.restorable?.to} />],
            ["Gaps", backups.gaps.length],
            ["Next backup", <Age key="next" time={backups.next_at} />],
          ]}
        />
        <div class="halves">
          <TextField
            label="Moment, in your local time"
            type="datetime-local"
            value={moment ?? inputOf(newest)}
            onInput={setMoment}
            fault={fault ?? form.fault("restore_point")}
          />
          <TextField
            label="Name of the new service"
            value={form.values.name}
            onInput={(value) => form.set("name", value)}
            fault={form.fault("target_service_name")}
            autocomplete="off"
          />
        </div>
        <ErrorNotice error={form.error} />
        <div class="row">
          <Button kind="primary" type="submit" busy={form.isBusy} refusal={refusalOf("services:write") ?? fault}>
            Restore
          </Button>
        </div>
      </form>
    </Card>
  );
}
