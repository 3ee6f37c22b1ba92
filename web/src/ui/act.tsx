/** A button that changes something; who may only look does not see it. */
import { readOnly } from '../lib/api';
import { Button, type ButtonProps } from './controls';

export const Act = (props: ButtonProps) => (readOnly.value ? null : <Button {...props} />);
