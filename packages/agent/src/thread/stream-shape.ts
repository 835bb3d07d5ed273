import { isRecord } from "@tenon/core";
import type { Question, QuestionAction } from "../question/open-questions.ts";
import type { ThreadEvent } from "./events.ts";
import { boundRecord, boundValue, cutText, splitText } from "./stream-bounds.ts";

/** What a value to redact is. */
export interface RedactPlace {
  /** `args` and `state` are objects, `log` and `artifact` any value, `text` what a tool, a log or a progress line says. */
  readonly kind: "args" | "state" | "artifact" | "log" | "text";
  readonly server?: string;
  readonly tool?: string;
  readonly toolCallId?: string;
}

/** Takes secrets out of a value before an event carries it; the value given must not be changed. */
export type StreamRedactor = (value: unknown, place: RedactPlace) => unknown;

/** An event that may have been cut to size: values left out, texts shortened. */
export type Shaped = ThreadEvent & { readonly truncated?: boolean };

export interface ShapeOptions {
  readonly redact: StreamRedactor | undefined;
  /** UTF-16 units of one text, and of the JSON of one value. */
  readonly maxText: number;
  readonly onRedactError: (error: unknown) => void;
}

const HIDDEN = "[redacted]";
/** A question must be answerable: it gets more room than a value that is only shown. */
const QUESTION_ROOM = 4;

type Call = Pick<QuestionAction, "server" | "tool" | "toolCallId">;

/** Makes events fit to leave the process: secrets out, sizes bounded, JSON throughout. */
export function shaper({ redact, maxText, onRedactError }: ShapeOptions): (event: ThreadEvent) => Shaped[] {
  function clean(value: unknown, kind: RedactPlace["kind"], call: Call = {}): unknown {
    if (!redact) return value;
    const { server, tool, toolCallId } = call;
    const place = { ...(server !== undefined && { server }), ...(tool !== undefined && { tool }) };
    try {
      return redact(value, { kind, ...place, ...(toolCallId !== undefined && { toolCallId }) });
    } catch (error) {
      onRedactError(error);
      return kind === "args" || kind === "state" ? {} : HIDDEN;
    }
  }

  function record(value: Readonly<Record<string, unknown>>, kind: "args" | "state", call: Call, room = maxText) {
    const cleaned = clean(value, kind, call);
    const { value: bounded, truncated } = boundRecord(cleaned, room);
    return { bounded, cut: truncated ? { truncated } : {} };
  }

  function text(value: string, call: Call) {
    const cleaned = clean(value, "text", call);
    const { value: bounded, truncated } = cutText(typeof cleaned === "string" ? cleaned : HIDDEN, maxText);
    return { bounded, cut: truncated ? { truncated } : {} };
  }

  function question(given: Question): Shaped {
    const redacted =
      given.kind === "approval"
        ? {
            ...given,
            actions: given.actions.map((action) => ({ ...action, args: clean(action.args, "args", action) })),
          }
        : given;
    const { value, truncated } = boundRecord(redacted, maxText * QUESTION_ROOM);
    // a copy of the question, in which texts and lists may be shorter
    return { type: "question", question: value as unknown as Question, ...(truncated && { truncated }) };
  }

  return (event) => {
    switch (event.type) {
      case "text":
      case "reasoning":
        return splitText(event.delta, maxText).map((delta) => ({ ...event, delta }));
      case "call-args":
        // half a value cannot be redacted; the whole one comes with call-end
        return redact ? [] : splitText(event.delta, maxText).map((delta) => ({ ...event, delta }));
      case "call-end":
      case "tool-start": {
        const { bounded, cut } = record(event.args, "args", event);
        return [{ ...event, args: bounded, ...cut }];
      }
      case "state": {
        const { bounded, cut } = record(event.values, "state", {});
        return [{ ...event, values: bounded, ...cut }];
      }
      case "progress": {
        if (event.message === undefined) return [event];
        const { bounded, cut } = text(event.message, event);
        return [{ ...event, message: bounded, ...cut }];
      }
      case "log": {
        const { value, truncated } = boundValue(clean(event.data, "log", event), maxText);
        return [{ ...event, data: value ?? null, ...(truncated && { truncated }) }];
      }
      case "tool-end": {
        const { bounded, cut } = text(event.text, event);
        const artifact = event.artifact && boundRecord(clean(event.artifact, "artifact", event), maxText);
        return [
          {
            ...event,
            text: bounded,
            ...cut,
            // a copy of the artifact, in which values may be missing
            ...(artifact && { artifact: artifact.value as unknown as NonNullable<typeof event.artifact> }),
            ...(artifact?.truncated && { truncated: true }),
          },
        ];
      }
      case "question":
        return [question(event.question)];
      case "text-end":
      case "call-start":
        return [event];
    }
  };
}

function same(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/**
 * The arguments a person edited, with the original in every place they left redacted: `edited` is compared with what they
 * were shown.
 */
export function withoutRedaction(original: unknown, shown: unknown, edited: unknown): unknown {
  if (same(shown, edited)) return original;
  if (Array.isArray(original) && Array.isArray(shown) && Array.isArray(edited) && shown.length === edited.length) {
    return edited.map((item, i) => withoutRedaction(original[i], shown[i], item));
  }
  if (!isRecord(original) || !isRecord(shown) || !isRecord(edited)) return edited;
  return Object.fromEntries(
    Object.entries(edited).map(([key, item]) => {
      const known = Object.hasOwn(original, key) && Object.hasOwn(shown, key);
      return [key, known ? withoutRedaction(original[key], shown[key], item) : item];
    }),
  );
}
