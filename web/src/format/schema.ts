/** The part of JSON Schema that forms are made of, and schemas of values that have none. */
import { isMapping, type Mapping } from "./json";

export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  const?: unknown;
  format?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  examples?: unknown[];
  additionalProperties?: boolean | Schema;
}
export type FieldKind = "text" | "long" | "number" | "integer" | "boolean" | "choice" | "object" | "list" | "json";

/** Types from defaults: what a workload says is what its fields take. */
export function schemaOf(value: unknown): Schema {
  switch (typeof value) {
    case "string":
      return { type: "string", default: value };
    case "number":
      return { type: Number.isInteger(value) ? "integer" : "number", default: value };
    case "boolean":
      return { type: "boolean", default: value };
  }
  if (Array.isArray(value)) {
    const kinds = new Set(value.map((item) => typeof item));
    const plain = kinds.size === 1 && ["string", "number"].includes([...kinds][0]!);
    return { type: "array", default: value, ...(plain ? { items: { type: [...kinds][0] as string } } : {}) };
  }
  if (isMapping(value) && Object.keys(value).length && !("$noetl" in value))
    return { type: "object", properties: Object.fromEntries(Object.entries(value).map(([key, item]) => [key, schemaOf(item)])) };
  return { default: value };
}

export function fieldKind(schema: Schema): FieldKind {
  const types = Array.isArray(schema.type) ? schema.type.filter((type) => type !== "null") : schema.type ? [schema.type] : [];
  if (schema.enum) return "choice";
  if (types.length > 1) return "json";
  switch (types[0]) {
    case "string":
      return schema.format === "textarea" || (schema.maxLength ?? 0) > 200 || String(schema.default ?? "").includes("\n") ? "long" : "text";
    case "number":
    case "integer":
    case "boolean":
      return types[0];
    case "object":
      return schema.properties ? "object" : "json";
    case "array":
      return ["text", "number", "integer"].includes(schema.items ? fieldKind(schema.items) : "") ? "list" : "json";
    default:
      return schema.properties ? "object" : "json";
  }
}

/** What a form begins with: defaults, and empty objects around those that have some. */
export function initial(schema: Schema): unknown {
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (fieldKind(schema) === "object") {
    const entries = Object.entries(schema.properties ?? {}).map(([key, item]) => [key, initial(item)] as const);
    return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  }
  if (fieldKind(schema) === "boolean") return false;
  return undefined;
}

/** What is wrong with a value by path (`a.b`), as far as a form can tell; the server judges. */
export function misfits(schema: Schema, value: unknown, path = ""): Record<string, string> {
  const own = misfit(schema, value);
  if (own) return { [path]: own };
  if (fieldKind(schema) !== "object" || !isMapping(value)) return {};
  const found: Record<string, string> = {};
  for (const [key, item] of Object.entries(schema.properties ?? {})) {
    const below = path ? `${path}.${key}` : key;
    if (value[key] === undefined || value[key] === "") {
      if (schema.required?.includes(key) && !(value[key] === "" && (item.minLength ?? 0) === 0 && !item.enum && fieldKind(item) === "json"))
        found[below] = "is needed";
    } else Object.assign(found, misfits(item, value[key], below));
  }
  return found;
}

function misfit(schema: Schema, value: unknown): string | null {
  if (typeof value === "number") {
    if (schema.type === "integer" && !Number.isInteger(value)) return "must be a whole number";
    if (schema.minimum !== undefined && value < schema.minimum) return `must be ${schema.minimum} or more`;
    if (schema.maximum !== undefined && value > schema.maximum) return `must be ${schema.maximum} or less`;
  }
  if (typeof value === "string") {
    if (schema.type === "number" || schema.type === "integer") return "must be a number";
    if (schema.minLength !== undefined && value.length < schema.minLength) return `must have ${schema.minLength} characters or more`;
    if (schema.maxLength !== undefined && value.length > schema.maxLength) return `must have ${schema.maxLength} characters or fewer`;
    if (schema.pattern && !matches(schema.pattern, value)) return `must match ${schema.pattern}`;
  }
  return null;
}

function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true;
  }
}

/** What differs from the defaults, deep: a command and a recorded workload name only that. */
export function changes(defaults: Mapping, value: Mapping): Mapping {
  const found: Mapping = {};
  for (const [key, item] of Object.entries(value)) {
    const before = defaults[key];
    if (isMapping(item) && isMapping(before)) {
      const below = changes(before, item);
      if (Object.keys(below).length) found[key] = below;
    } else if (JSON.stringify(item) !== JSON.stringify(before)) found[key] = item;
  }
  return found;
}
