import type { Maintenance, Weekday } from "@holdfast/sdk/responses.ts";
import { labelOf } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { SelectField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, Badge, Card, Facts } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";
import {
  applicableOf,
  notesOf,
  pauseReasonOf,
  refusalOfApply,
  weekdays,
  windowHours,
  windowText,
} from "./maintenance-view.ts";
import { isOpen } from "./service-view.ts";
import type { TabProps } from "./tab-props.ts";
import { UpgradeCard } from "./upgrade-card.tsx";

/** Pending updates of a service, and the window in which they start automatically. */
export function MaintenanceTab({ service, reload }: TabProps) {
  const { services } = account.value.client;
  const live = useLive<Maintenance>(
    `maintenance ${service.id}`,
    (signal) => services.maintenance(service.id, { signal }),
    { service: service.id, pollIntervalMs: 15_000 },
  );
  const { data } = live;
  const pauseReason = data === undefined ? null : pauseReasonOf(data);
  const refusal =
    refusalOf("services:write") ??
    (isOpen(service.operation) ? "Another operation is in progress." : undefined) ??
    (data && refusalOfApply(data));
  const apply = async () => {
    if (data === undefined) return;
    await services.applyMaintenance(service.id, applicableOf(data));
    live.reload();
    reload();
  };
  return (
    <>
      {pauseReason !== null && (
        <Notice tone="warn">
          <b>Automatic maintenance is paused.</b> {pauseReason}
        </Notice>
      )}
      <LiveTable
        title="Pending updates"
        live={{ ...live, data: data?.updates }}
        keyOf={({ id }) => id}
        icon="check"
        empty="The service is up to date"
        actions={
          <ActionButton kind="primary" refusal={refusal} run={apply}>
            Apply now
          </ActionButton>
        }
        columns={[
          [
            "Update",
            (update) => (
              <>
                <b>{update.title}</b> {update.urgent && <Badge tone="warn">Urgent</Badge>}
                {notesOf(update).map((note) => (
                  <p class="small quiet" key={note}>
                    {note}
                  </p>
                ))}
              </>
            ),
          ],
          ["From", ({ from }) => <span class="mono small">{from ?? ""}</span>],
          ["To", ({ to }) => <span class="mono small">{to ?? ""}</span>],
          ["Starts", ({ apply_at: time }) => (time === null ? "by request" : <Age time={time} />)],
        ]}
      />
      <UpgradeCard service={service} reload={reload} />
      {data !== undefined && (
        <WindowCard
          serviceId={service.id}
          maintenance={data}
          reload={() => {
            live.reload();
            reload();
          }}
        />
      )}
    </>
  );
}

interface WindowProps {
  readonly serviceId: string;
  readonly maintenance: Maintenance;
  readonly reload: () => void;
}

function WindowCard({ serviceId, maintenance, reload }: WindowProps) {
  const { window, window_is_default: isDefault, next_window_from: from, engine_version: version } = maintenance;
  const form = useForm<{ day: Weekday; hour: string }>({ day: window.day, hour: String(window.hour) });
  const refusal = refusalOf("services:write");
  const save = async (chosen: { day: Weekday; hour: number } | null) => {
    await account.value.client.services.update(serviceId, { maintenance_window: chosen });
    showToast("good", "Saved");
    reload();
  };
  return (
    <Card title="Window">
      <div class="stack">
        <Facts
          facts={[
            ["Each week", `${windowText(window)}${isDefault ? ", by default" : ""}`],
            ["Next", <Age key="next" time={from} />],
            ["Version", version ?? "unknown"],
          ]}
        />
        <FormBody
          form={form}
          action="Save"
          refusal={refusal}
          send={({ day, hour }) => save({ day, hour: Number(hour) })}
        >
          <div class="halves">
            <SelectField
              label="Day"
              {...form.field("day", "maintenance_window.day")}
              options={weekdays.map((day) => [day, labelOf(day)])}
            />
            <SelectField label="Hours" {...form.field("hour", "maintenance_window.hour")} options={windowHours} />
          </div>
          {!isDefault && (
            <ActionButton refusal={refusal} run={() => save(null)}>
              Use the default
            </ActionButton>
          )}
        </FormBody>
      </div>
    </Card>
  );
}
