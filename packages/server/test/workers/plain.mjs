export default ({ n }) => n * 2;
