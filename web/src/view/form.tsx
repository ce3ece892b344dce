/** A form made from a JSON Schema. The value is held by who shows it; fields nobody knows a kind for take JSON. */
import { useId, useState } from "preact/hooks";
import { isMapping, type Mapping } from "../format/json";
import { fieldKind, type Schema } from "../format/schema";
import { Button } from "./parts";

interface FieldProps {
  name: string;
  schema: Schema;
  value: unknown;
  change: (value: unknown) => void;
  path: string;
  wrong: Record<string, string>;
  required?: boolean;
}

/** The fields of an object. `wrong` has messages by path (`a.b`). */
export function SchemaFields({ schema, value, change, wrong = {}, path = "" }: { schema: Schema; value: Mapping; change: (value: Mapping) => void; wrong?: Record<string, string>; path?: string }) {
  return (
    <>
      {Object.entries(schema.properties ?? {}).map(([key, item]) => (
        <Field
          key={key}
          name={key}
          schema={item}
          value={value[key]}
          change={(next) => {
            const { [key]: _, ...rest } = value;
            change(next === undefined ? rest : { ...value, [key]: next });
          }}
          path={path ? `${path}.${key}` : key}
          wrong={wrong}
          required={schema.required?.includes(key)}
        />
      ))}
    </>
  );
}

/** One value that is no object: an answer of one word, a number. */
export function Field(props: FieldProps) {
  const { name, schema, value, change, path, wrong } = props;
  const id = useId();
  const kind = fieldKind(schema);
  const title = schema.title ?? name;
  const message = wrong[path];
  const described = [schema.description && `${id}-help`, message && `${id}-wrong`].filter(Boolean).join(" ") || undefined;
  if (kind === "object")
    return (
      <fieldset>
        <legend>{title}</legend>
        {schema.description && <p class="small muted">{schema.description}</p>}
        <SchemaFields schema={schema} value={isMapping(value) ? value : {}} change={change} wrong={wrong} path={path} />
      </fieldset>
    );
  const notes = (
    <>
      {schema.description && <span class="help" id={`${id}-help`}>{schema.description}</span>}
      {message && <span class="wrong" id={`${id}-wrong`}>{title} {message}</span>}
    </>
  );
  if (kind === "boolean")
    return (
      <div class="field">
        <label class="check">
          <input type="checkbox" checked={value === true} aria-describedby={described} onChange={(event) => change(event.currentTarget.checked)} />
          {title}
        </label>
        {notes}
      </div>
    );
  const shared = { id, "aria-describedby": described, "aria-invalid": message ? true : undefined, "aria-required": props.required || undefined };
  return (
    <div class="field">
      <label for={id}>
        {title} <span class="type">{[typeName(schema, kind), props.required && "needed"].filter(Boolean).join(", ")}</span>
      </label>
      {control(kind, schema, value, change, shared)}
      {notes}
    </div>
  );
}

function typeName(schema: Schema, kind: string): string {
  if (kind === "choice") return "";
  if (kind === "json") return Array.isArray(schema.type) ? schema.type.join(" or ") : (schema.type ?? "JSON");
  if (kind === "list") return "list";
  return kind === "long" ? "text" : (schema.format ?? kind);
}

type Shared = Record<string, unknown> & { id: string };

function control(kind: string, schema: Schema, value: unknown, change: (value: unknown) => void, shared: Shared) {
  switch (kind) {
    case "choice":
      return (
        <select class="input" {...shared} value={JSON.stringify(value)} onChange={(event) => change(event.currentTarget.value ? JSON.parse(event.currentTarget.value) : undefined)}>
          {!schema.enum!.some((item) => JSON.stringify(item) === JSON.stringify(value)) && <option value="">Choose…</option>}
          {schema.enum!.map((item) => <option key={JSON.stringify(item)} value={JSON.stringify(item)}>{typeof item === "string" ? item : JSON.stringify(item)}</option>)}
        </select>
      );
    case "number":
    case "integer":
      return <NumberInput value={value} change={change} integer={kind === "integer"} shared={shared} />;
    case "long":
      return <textarea class="input" rows={4} {...shared} value={typeof value === "string" ? value : ""} onInput={(event) => change(event.currentTarget.value)} />;
    case "list":
      return <ListInput schema={schema.items!} value={Array.isArray(value) ? value : []} change={change} shared={shared} />;
    case "json":
      return <JsonInput value={value} change={change} shared={shared} />;
    default: {
      const type = schema.format === "date" ? "date" : schema.format === "email" ? "email" : "text";
      return <input class="input" type={type} {...shared} value={typeof value === "string" ? value : ""} onInput={(event) => change(event.currentTarget.value)} />;
    }
  }
}

/** Keeps what is typed while it is no number yet; an empty field is no value. */
function NumberInput({ value, change, integer, shared }: { value: unknown; change: (value: unknown) => void; integer: boolean; shared: Shared }) {
  const shown = typeof value === "number" || typeof value === "string" ? String(value) : "";
  return (
    <input
      class="input numbers"
      inputMode={integer ? "numeric" : "decimal"}
      {...shared}
      value={shown}
      onInput={(event) => {
        const text = event.currentTarget.value.trim();
        const read = Number(text);
        change(text === "" ? undefined : Number.isFinite(read) && /\d$/.test(text) ? read : text);
      }}
    />
  );
}

function ListInput({ schema, value, change, shared }: { schema: Schema; value: unknown[]; change: (value: unknown) => void; shared: Shared }) {
  const replace = (index: number, item: unknown) => change(value.map((before, i) => (i === index ? item : before)));
  return (
    <div class="stack tight" id={shared.id}>
      {value.map((item, index) => (
        <div class="item-row" key={index}>
          {fieldKind(schema) === "text" ? (
            <input class="input" aria-label={`Item ${index + 1}`} value={String(item ?? "")} onInput={(event) => replace(index, event.currentTarget.value)} />
          ) : (
            <NumberInput value={item} change={(next) => replace(index, next ?? null)} integer={schema.type === "integer"} shared={{ id: `${shared.id}-${index}`, "aria-label": `Item ${index + 1}` }} />
          )}
          <Button kind="bare" icon="close" aria-label={`Remove item ${index + 1}`} onClick={() => change(value.filter((_, i) => i !== index))} />
        </div>
      ))}
      <div><Button small icon="plus" onClick={() => change([...value, fieldKind(schema) === "text" ? "" : 0])}>Add an item</Button></div>
    </div>
  );
}

/** Whether a text of the form is no JSON yet: its value is still the one before, which nobody means. It gets the focus. */
export function isUnfinished(form: HTMLElement): boolean {
  const text = form.querySelector<HTMLElement>("textarea[data-unfinished]");
  text?.focus();
  return text !== null;
}

/** JSON as text; the value changes only when the text is JSON. */
export function JsonInput({ value, change, shared, rows = 4, onWrong }: { value: unknown; change: (value: unknown) => void; shared?: Partial<Shared>; rows?: number; onWrong?: (message: string | null) => void }) {
  const [text, setText] = useState<string | null>(null);
  const [wrong, setWrong] = useState<string | null>(null);
  const shown = text ?? (value === undefined ? "" : JSON.stringify(value, null, 2));
  const take = (next: string) => {
    setText(next);
    let message: string | null = null;
    try {
      change(next.trim() ? JSON.parse(next) : undefined);
    } catch (error) {
      message = error instanceof Error ? error.message : String(error);
    }
    setWrong(message);
    onWrong?.(message);
  };
  return (
    <>
      <textarea class="input code" spellcheck={false} rows={rows} {...shared} aria-invalid={wrong ? true : shared?.["aria-invalid"] as boolean | undefined} data-unfinished={wrong !== null || undefined} value={shown} onInput={(event) => take(event.currentTarget.value)} onBlur={() => !wrong && setText(null)} />
      {wrong && <span class="wrong small failed-text" role="status">No JSON yet: {wrong}</span>}
    </>
  );
}
