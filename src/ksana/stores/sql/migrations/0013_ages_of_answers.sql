-- The keys of items outlive them and may be many: whoever looks for old answers to forget passes over none of them.

{drop_answers_index};
{add_answers_index};
