import { useState } from "preact/hooks";
import type { ManagedService } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { Button } from "../parts/button.tsx";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Age, Card, PageHead } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { engineText, undeleteRefusal } from "./service-view.ts";
import { useCatalog } from "./use-catalog.ts";

const pageSize = 50;

/** Deleted services, which can be created again with their data until their retention ends. */
export function DeletedPage() {
  const catalog = useCatalog();
  const [chosen, setChosen] = useState<ManagedService | undefined>();
  const live = useLive<readonly ManagedService[]>(
    "deleted services",
    async (signal) => {
      const list = account.value.client.services.list({ deleted: true }, { signal, limit: pageSize });
      for await (const { entries } of list.pages()) return entries;
      return [];
    },
    { pollIntervalMs: 15_000 },
  );
  return (
    <>
      <PageHead
        title="Deleted services"
        crumbs={<a href={hrefOf("services")}>Services</a>}
        about="Their final backups are retained for 7 days"
      />
      {chosen !== undefined && <Undelete key={chosen.id} service={chosen} onClose={() => setChosen(undefined)} />}
      <LiveTable
        title="Deleted services"
        live={live}
        keyOf={({ id }) => id}
        icon="database"
        empty="No deleted service"
        columns={[
          ["Name", ({ name }) => <b>{name}</b>],
          ["Engine", (service) => engineText(catalog, service)],
          ["Storage", ({ storage_size_gb: size }) => <span class="number">{size} GB</span>],
          ["Deleted", ({ deleted_at: time }) => <Age time={time} />],
          ["Can be undeleted until", ({ undelete_until: time }) => <Age time={time} />],
          [
            "",
            (service) => (
              <Button
                refusal={refusalOf("services:write") ?? undeleteRefusal(service, Date.now())}
                onClick={() => setChosen(service)}
              >
                Undelete
              </Button>
            ),
          ],
        ]}
      >
        <p class="quiet">A service that you delete is listed here, and can be undeleted with its data.</p>
      </LiveTable>
    </>
  );
}

interface UndeleteProps {
  readonly service: ManagedService;
  readonly onClose: () => void;
}

function Undelete({ service: { id, name }, onClose }: UndeleteProps) {
  const form = useForm({ name });
  return (
    <Card title={`Undelete ${name}`} actions={<Button onClick={onClose}>Cancel</Button>}>
      <FormBody
        form={form}
        action="Undelete"
        kind="primary"
        refusal={refusalOf("services:write")}
        send={async (input, idempotencyKey) => {
          const created = await account.value.client.services.undelete(id, { name: input.name, idempotencyKey });
          openPage(hrefOf("services", created.id));
        }}
      >
        <p class="quiet">The service is created again with its data, users and settings. Its host name may change.</p>
        <TextField label="Name" help="Another name if it is in use" {...form.field("name")} autocomplete="off" />
      </FormBody>
    </Card>
  );
}
