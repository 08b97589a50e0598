import { type GenericSchema, literal, metadata, pipe, strictObject } from 'valibot'
import { formShape, instantShape } from './shapes.ts'
import type { SignupReceipt } from '../wire.ts'

/** That a signup was received. */
export const receiptShape: GenericSchema<unknown, SignupReceipt> = pipe(
  strictObject({
    id: formShape('Names the signup.', 'sgn_5K0M2N8P4QRS6TVW7XYZ', '^sgn_', 80),
    status: pipe(literal('received'), metadata({ description: 'The service has it.' })),
    created_at: instantShape('When it was received.', '2026-11-20T09:00:00.000Z'),
  }),
  metadata({ title: 'SignupReceipt', description: 'That a signup was received.' }),
)
