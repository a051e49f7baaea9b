-- Nothing: the number is taken.

SELECT 1;
